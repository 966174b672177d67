package ds

import (
	"time"

	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/transport"
)

// Tap observes what a server receives, decodes and sends, for recordings; package capture writes a
// file. With several shards, several goroutines call its methods and those of its [PlayerTap]s.
// They must return quickly. Except for Joined, they must not call methods of the server or of a
// player. A panic in a method that concerns a player ends the session of that player, and no
// further method of its PlayerTap is called; see [Hooks.PanicHandler].
type Tap interface {
	// Joined is called before any other method for a player.
	Joined(p *Player, suite transport.Suite) PlayerTap
	// Counted is called about once a second.
	Counted(st transport.ListenerStats)
	// Resets returns a count. When it changes, the server requests all clients to reset their
	// streams. Later payloads can then be decoded without the earlier ones.
	Resets() uint64
}

// PlayerTap observes one player. Its methods except Carried are called one at a time. For a
// received payload or message, Carried is called first; then, in order, Decoded or Dropped for each
// payload in it, or Dropped once for all of it.
type PlayerTap interface {
	// Carried is called with each payload and message that the session sends or receives.
	Carried(e transport.TapEvent)
	// Bound is called when an RPC has been bound.
	Bound(b Binding)
	// Decoded is called with the decoded frames of a payload, which are valid during the call.
	Decoded(at time.Time, rpc int, frames []rpcdelta.Delivery)
	// Dropped is called when a payload or a message was dropped. If it belongs to no RPC, rpc is
	// negative. decoder reports whether the decoder found the reason; otherwise the decoder did not
	// receive the payload.
	Dropped(at time.Time, rpc int, d Drop, decoder bool)
	// Withheld is called when a frame was decoded but not delivered, except for frames that
	// [Validate] rejects.
	Withheld(at time.Time, rpc int, seq uint64, d Drop)
	// Left is the last call.
	Left(err error)
}

// Binding describes how the payloads of one RPC of one player are decoded.
type Binding struct {
	RPC    int // the RPC's number in headers
	Schema *schema.Schema
	// RateHz, PerTick, PeerRing and Frames are from the client's request: calls per second, factors
	// of the velocities, the size of its ring, and new frames per datagram.
	RateHz                float64
	PerTick               []int64
	PeerRing, Frames      int
	Ring                  int
	Codec                 rpcdelta.Codec
	Reliable, DeliverLate bool
	// Deadline is the maximum age in frames at which the client repeats a lost payload, 0 if it
	// repeats none. Batch is the maximum number of later frames that a frame waits for.
	Deadline, Batch int
	Prior           *prior.Prior // nil if the codec uses none
}
