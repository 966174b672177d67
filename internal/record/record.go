// Package record defines the records of a capture file: their types, and their encoding without the
// framing that package capture adds. Section 4 of docs/capture.md specifies the format.
package record

import (
	"encoding/binary"
	"maps"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// MaxSize is the maximum size of a record's tag and body in bytes: a prior, and room for numbers.
const MaxSize = prior.MaxSize + 64

// Body is the content of a record: a pointer to one of the types of this package.
type Body interface {
	// Append appends the tag and the body. It does not allocate if b has room.
	Append(b []byte) []byte
	fields(c *coder)
}

// Start is the first record of each file.
type Start struct {
	// Wall is the wall clock time at the start of the file.
	Wall time.Time
	// Index is the position of the file in its series, from 0. Run is a random number that all
	// files of the series share.
	Index int
	Run   uint64
}

// Schema is the schema file of an RPC. ID identifies it in [Bound] records.
type Schema struct {
	ID   uint64
	JSON []byte
}

// Prior is the file of a prior other than the built-in one.
type Prior struct {
	Hash uint64
	File []byte
}

// Opened is the start of a session.
type Opened struct {
	// Player is the number of the session in the series of files, from 1.
	Player uint64
	// Again reports that the session started in an earlier file.
	Again bool
	// Session is the session's id, Client the client id of its connect token.
	Session, Client uint64
	// Addr is the client's address.
	Addr netip.AddrPort
	// Suite is the name of the cipher suite, AEADOverhead its overhead per datagram, in bytes.
	Suite        string
	AEADOverhead int
}

// Closed is the end of a session. Cause is empty if the server closed it.
type Closed struct {
	Player uint64
	Cause  string
}

// Bound is a binding of a player: an RPC, and the parameters with which its payloads are decoded.
type Bound struct {
	Player uint64
	// Again reports that the binding was made in an earlier file.
	Again bool
	// RPC is the number in payload headers and acks. Schema is the ID of a [Schema] record earlier
	// in the file.
	RPC    int
	Schema uint64
	// The client requested RateHz calls per second, and declared a ring of PeerRing frames and at
	// most Frames new frames per payload.
	RateHz           float64
	PeerRing, Frames int
	// PerTick contains the factor of each velocity, from the request; see [schema.Schema.PerTick].
	PerTick []int64
	// Ring is the size of the server's ring, in frames.
	Ring int
	// DeliverLate reports that the server also delivers late frames.
	DeliverLate bool
	// Deadline is the maximum age in frames at which the client repeats a lost payload, 0 if it
	// repeats none. Batch is then the maximum number of later frames that a frame waits for.
	Deadline, Batch int
	Codec           rpcdelta.Codec
	Reliable        bool
	// Prior is the hash of the prior in use; 0 for a codec without one.
	Prior uint64
}

// Datagram is a datagram of the unreliable channel, decrypted.
type Datagram struct {
	Player uint64
	// Sent reports that the server sent it. Otherwise the server received it.
	Sent bool
	// Number is the packet number, Size the size of the UDP payload in bytes.
	Number uint64
	Size   int
	// Body is valid until the next record is read.
	Body []byte
}

// Message is a message of the reliable channel.
type Message struct {
	Player uint64
	// Sent reports that the server sent it. Otherwise the server received it.
	Sent bool
	// Body is valid until the next record is read.
	Body []byte
}

// Decoded reports that a payload in the player's last [Datagram] or [Message] was decoded. For each
// payload of a datagram there is a Decoded or a [Dropped], in the order of the payloads.
type Decoded struct {
	Player uint64
	RPC    int
	// Seq is the sequence number of the newest frame, Kind its kind, Frames the number of frames.
	Seq    uint64
	Frames int
	Kind   rpcdelta.FrameKind
	// Hash is the hash of the frames; capture.Hash computes it.
	Hash uint32
}

// NoRPC is the RPC of a [Dropped] whose RPC is unknown.
const NoRPC = -1

// Dropped reports that the player's last [Datagram] or [Message], or a payload in it, was dropped.
type Dropped struct {
	Player uint64
	RPC    int
	// Reason is the value of the label "reason" in metrics.
	Reason string
	// Decoder reports that the decoder dropped it. Otherwise it did not reach the decoder.
	Decoder bool
}

// Withheld reports that a decoded frame was not delivered to the game.
type Withheld struct {
	Player uint64
	RPC    int
	Seq    uint64
	Reason string
}

// Lost reports that the writer was too slow and dropped records at this point of the file.
type Lost struct{ Records uint64 }

// Counts are the numbers of datagrams that the server has dropped so far, by reason. Datagrams that
// belong to no session count too.
type Counts struct{ Drops []Count }

// Count is the number of drops for one reason.
type Count struct {
	Reason string
	N      uint64
}

// End is the last record of each complete file. More reports that the series has a next file.
type End struct{ More bool }

// Preamble keeps the records with which the next file of a series starts, so that it can be read
// alone: schemas, priors, open sessions and their bindings. The zero value is empty.
type Preamble struct {
	shared   [][]byte            // schemas and priors
	sessions map[uint64]*session // by player
}

type session struct {
	opened []byte
	bound  [][]byte
}

// Add updates the preamble by a record that was written. content is the tag and the body of the
// record, as Append returns them.
func (p *Preamble) Add(content []byte) {
	tag, c := content[0], coder{b: content[1:], parse: true}
	if tag == tagOpened || tag == tagBound {
		var flags byte
		c.byte(&flags)
	}
	var player uint64
	switch tag {
	case tagSchema, tagPrior:
		p.shared = append(p.shared, slices.Clone(content))
	case tagOpened:
		if p.sessions == nil {
			p.sessions = map[uint64]*session{}
		}
		c.uint(&player)
		p.sessions[player] = &session{opened: repeated(content)}
	case tagBound:
		c.uint(&player)
		if s := p.sessions[player]; s != nil {
			s.bound = append(s.bound, repeated(content))
		}
	case tagClosed:
		c.uint(&player)
		delete(p.sessions, player)
	}
}

// repeated returns a copy of an Opened or Bound with the flag Again.
func repeated(content []byte) []byte {
	c := slices.Clone(content)
	c[1] |= 1
	return c
}

// All returns the tags and bodies of the records, in the order in which a file needs them.
func (p *Preamble) All() [][]byte {
	all := slices.Clone(p.shared)
	for _, player := range slices.Sorted(maps.Keys(p.sessions)) {
		s := p.sessions[player]
		all = append(append(all, s.opened), s.bound...)
	}
	return all
}

func (r *Start) Append(b []byte) []byte { return encode(b, tagStart, r) }

func (r *Schema) Append(b []byte) []byte { return encode(b, tagSchema, r) }

func (r *Prior) Append(b []byte) []byte { return encode(b, tagPrior, r) }

func (r *Opened) Append(b []byte) []byte { return encode(b, tagOpened, r) }

func (r *Closed) Append(b []byte) []byte { return encode(b, tagClosed, r) }

func (r *Bound) Append(b []byte) []byte { return encode(b, tagBound, r) }

func (r *Decoded) Append(b []byte) []byte { return encode(b, tagDecoded, r) }

func (r *Dropped) Append(b []byte) []byte { return encode(b, tagDropped, r) }

func (r *Withheld) Append(b []byte) []byte { return encode(b, tagWithheld, r) }

func (r *Lost) Append(b []byte) []byte { return encode(b, tagLost, r) }

func (r *Counts) Append(b []byte) []byte { return encode(b, tagCounts, r) }

func (r *End) Append(b []byte) []byte { return encode(b, tagEnd, r) }

// Append implements [Body].
func (r *Datagram) Append(b []byte) []byte {
	// Most records are datagrams. Without a coder this takes a quarter less time.
	tag := tagReceived
	if r.Sent {
		tag = tagSent
	}
	b = binary.AppendUvarint(append(b, tag), r.Player)
	b = binary.AppendUvarint(b, r.Number)
	b = binary.AppendUvarint(b, uint64(max(r.Size, 0)))
	return append(b, r.Body...)
}

// Append implements [Body].
func (r *Message) Append(b []byte) []byte {
	if r.Sent {
		return encode(b, tagSentMessage, r)
	}
	return encode(b, tagReceivedMessage, r)
}

func (r *Start) fields(c *coder) {
	nanos := uint64(r.Wall.UnixNano())
	if c.fixed(&nanos); c.parse {
		r.Wall = time.Unix(0, int64(nanos))
	}
	c.int("index", &r.Index, math.MaxInt32)
	c.fixed(&r.Run)
}

func (r *Schema) fields(c *coder) { c.uint(&r.ID); rest(c, &r.JSON) }

func (r *Prior) fields(c *coder) { c.fixed(&r.Hash); rest(c, &r.File) }

func (r *Opened) fields(c *coder) {
	c.flags(&r.Again)
	c.uint(&r.Player)
	c.fixed(&r.Session)
	c.fixed(&r.Client)
	c.addr(&r.Addr)
	c.text(&r.Suite)
	c.int("AEAD overhead", &r.AEADOverhead, math.MaxUint8)
}

func (r *Closed) fields(c *coder) { c.uint(&r.Player); rest(c, &r.Cause) }

func (r *Bound) fields(c *coder) {
	repeats := r.Deadline > 0
	c.flags(&r.Again, &r.DeliverLate, &r.Reliable, &repeats)
	c.uint(&r.Player)
	c.rpc(&r.RPC)
	c.uint(&r.Schema)
	rate := math.Float64bits(r.RateHz)
	c.fixed(&rate)
	r.RateHz = math.Float64frombits(rate)
	c.int("ring", &r.PeerRing, rpcdelta.MaxRing)
	c.int("frames", &r.Frames, rpcdelta.MaxHeld)
	c.int("ring", &r.Ring, rpcdelta.MaxRing)
	c.byte((*byte)(&r.Codec))
	c.fixed(&r.Prior)
	c.ints(&r.PerTick, schema.MaxFields)
	if repeats {
		c.int("deadline", &r.Deadline, rpcdelta.MaxRepairAge)
		c.int("batch", &r.Batch, rpcdelta.MaxHeld)
	}
}

func (r *Datagram) fields(c *coder) {
	c.uint(&r.Player)
	c.uint(&r.Number)
	c.int("size", &r.Size, math.MaxUint16)
	rest(c, &r.Body)
}

func (r *Message) fields(c *coder) { c.uint(&r.Player); rest(c, &r.Body) }

func (r *Decoded) fields(c *coder) {
	c.uint(&r.Player)
	c.rpc(&r.RPC)
	c.uint(&r.Seq)
	c.int("frames", &r.Frames, math.MaxUint8)
	c.byte((*byte)(&r.Kind))
	c.hash(&r.Hash)
}

func (r *Dropped) fields(c *coder) {
	c.uint(&r.Player)
	number := r.RPC + 1
	c.int("RPC number", &number, rpcdelta.MaxRPC+1)
	r.RPC = number - 1
	c.flags(&r.Decoder)
	rest(c, &r.Reason)
}

func (r *Withheld) fields(c *coder) {
	c.uint(&r.Player)
	c.rpc(&r.RPC)
	c.uint(&r.Seq)
	rest(c, &r.Reason)
}

func (r *Lost) fields(c *coder) { c.uint(&r.Records) }

func (r *Counts) fields(c *coder) {
	n := len(r.Drops)
	c.int("number of counts", &n, maxCounts)
	for i := 0; i < n && c.err == nil; i++ {
		if c.parse {
			r.Drops = append(r.Drops, Count{})
		}
		c.text(&r.Drops[i].Reason)
		c.uint(&r.Drops[i].N)
	}
}

func (r *End) fields(c *coder) { c.flags(&r.More) }
