package capture

import (
	"net/netip"
	"time"

	"github.com/uplink-rpc/uplink/rpcdelta"
)

// Body is what a record holds: one of the types of this package that are listed in docs/capture.md.
type Body interface {
	tag() tag
	// append appends the body's bytes.
	append(b []byte) []byte
}

// tag is the first byte of a record.
type tag uint8

// The tags. Never change one: files last.
const (
	tagStart tag = iota + 1
	tagSchema
	tagPrior
	tagOpened
	tagClosed
	tagBound
	tagReceived
	tagSent
	tagReceivedMessage
	tagSentMessage
	tagDecoded
	tagDropped
	tagWithheld
	tagLost
	tagCounts
	tagEnd
)

// Start is the first record of each file.
type Start struct {
	// Wall is the time of day at which the file's time is 0.
	Wall time.Time
	// Index is the file's place in its row, from 0, and Run a random number that all files of the row share.
	Index int
	Run   uint64
}

// Schema describes an RPC, as a schema file. ID is its number in the file.
type Schema struct {
	ID   uint64
	JSON []byte
}

// Prior is a prior that is not the built-in one, as its file.
type Prior struct {
	Hash uint64
	File []byte
}

// Opened says that a session began. Player is its number in the row of files, from 1.
type Opened struct {
	Player uint64
	// Again says that the session began in an earlier file.
	Again bool
	// Session is the session's id, Client the id that its token names.
	Session, Client uint64
	// Addr is where the client's datagrams came from.
	Addr netip.AddrPort
	// Suite is how they are sealed, and Seal the bytes that this adds to each.
	Suite string
	Seal  int
}

// Closed says that a session ended, and why; an empty cause is this end's wish.
type Closed struct {
	Player uint64
	Cause  string
}

// Bound says that an RPC of a player is bound, and how its payloads are decoded.
type Bound struct {
	Player uint64
	// Again says that it was bound in an earlier file.
	Again bool
	// RPC is the number in headers and acks, Schema the ID of a Schema before.
	RPC    int
	Schema uint64
	// RateHz, PeerRing and Frames are what the client asked for: calls a second, frames in its ring, new frames
	// in a datagram.
	RateHz           float64
	PeerRing, Frames int
	// Ring and DeliverLate are the server's.
	Ring        int
	DeliverLate bool
	Codec       rpcdelta.Codec
	Reliable    bool
	// Prior is the hash of the prior that is used; 0 with a codec that has none.
	Prior uint64
}

// Datagram is the body of a datagram of the unreliable channel, unsealed.
type Datagram struct {
	Player uint64
	// Sent says that it went to the client; else it came from there.
	Sent bool
	// Number is the packet number, Size the bytes of the UDP payload.
	Number uint64
	Size   int
	// Body is valid until the next record is read.
	Body []byte
}

// Message is one of the reliable channel.
type Message struct {
	Player uint64
	Sent   bool
	// Body is valid until the next record is read.
	Body []byte
}

// Decoded says that the player's last Datagram or Message held a payload of an RPC from which frames came; of a
// datagram with several payloads there is one of these, or a Dropped, for each, in their order.
type Decoded struct {
	Player uint64
	RPC    int
	// Seq is the sequence of the newest of the frames, Frames their number, Kind the newest one's.
	Seq    uint64
	Frames int
	Kind   rpcdelta.FrameKind
	// Hash is that of the frames, see [Hash].
	Hash uint32
}

// NoRPC is the number of no RPC.
const NoRPC = -1

// Dropped says that the player's last Datagram or Message, or one of its payloads, was not used.
type Dropped struct {
	Player uint64
	// RPC is NoRPC if it is not known.
	RPC int
	// Reason is the label that metrics have.
	Reason string
	// Decoder says that the decoder found it; else the payload was dropped before it came there.
	Decoder bool
}

// Withheld says that a frame that was decoded was not given to the game.
type Withheld struct {
	Player uint64
	RPC    int
	Seq    uint64
	Reason string
}

// Lost says that so many records are missing here: the writer could not keep up.
type Lost struct{ Records uint64 }

// Counts are what a server has counted so far of datagrams that belong to no session, or were not used by one, by
// reason.
type Counts struct{ Drops []Count }

// Count is one of them.
type Count struct {
	Reason string
	N      uint64
}

// End is the last record of each file that is whole. More says that the next file of the row goes on.
type End struct{ More bool }

func (*Start) tag() tag  { return tagStart }
func (*Schema) tag() tag { return tagSchema }
func (*Prior) tag() tag  { return tagPrior }
func (*Opened) tag() tag { return tagOpened }
func (*Closed) tag() tag { return tagClosed }
func (*Bound) tag() tag  { return tagBound }

func (d *Datagram) tag() tag {
	if d.Sent {
		return tagSent
	}
	return tagReceived
}

func (m *Message) tag() tag {
	if m.Sent {
		return tagSentMessage
	}
	return tagReceivedMessage
}

func (*Decoded) tag() tag  { return tagDecoded }
func (*Dropped) tag() tag  { return tagDropped }
func (*Withheld) tag() tag { return tagWithheld }
func (*Lost) tag() tag     { return tagLost }
func (*Counts) tag() tag   { return tagCounts }
func (*End) tag() tag      { return tagEnd }
