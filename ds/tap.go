package ds

import (
	"time"

	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/transport"
)

// Tap sees what a server gets and sends, and what it makes of that: for recordings. Package capture/tap has one that
// writes a file. Its methods, and those of a [PlayerTap], are called by several goroutines where there are several
// shards; they must be quick, and must not call the server's or a player's methods, but for those
// of Joined. A panic in a method ends the session of the player whom the call is about, if there is
// one; see [Config.PanicHandler]. No method of that PlayerTap is called after that.
type Tap interface {
	// Joined is called before anything else of a player.
	Joined(p *Player, suite transport.Suite) PlayerTap
	// Counted is called about once a second.
	Counted(st transport.ListenerStats)
	// Resets is a count. When it has changed, all clients are asked to start their streams anew, so that what comes
	// can be decoded without what came before.
	Resets() uint64
}

// PlayerTap sees one player's part. Its methods but Carried are called one at a time. Carried has a payload or message
// first; then come, in order, a Decoded or a Dropped for each payload in it, or one Dropped for all of it.
type PlayerTap interface {
	// Carried is called with each payload and message of the connection, see
	// [transport.Conn.SetTap].
	Carried(e transport.TapEvent)
	// Bound says that an RPC is bound.
	Bound(b Binding)
	// Decoded has the frames of a payload as the decoder gave them, valid during the call.
	Decoded(at time.Time, rpc int, frames []rpcdelta.Delivery)
	// Dropped says that a payload or a message was dropped, of no RPC if rpc is negative, and whether the decoder
	// found the reason or never saw it.
	Dropped(at time.Time, rpc int, d Drop, decoder bool)
	// Withheld says that a frame was decoded but not delivered. With [Config.Poll] it is not told of those that
	// [Validate] refuses.
	Withheld(at time.Time, rpc int, seq uint64, d Drop)
	// Left is the last call.
	Left(err error)
}

// Binding is how the payloads of one RPC of one player are decoded.
type Binding struct {
	RPC    int // in headers
	Schema *schema.Schema
	// RateHz, PeerRing and Frames are what the client asked for: calls a second, the size of its ring, new frames in
	// a datagram.
	RateHz                float64
	PeerRing, Frames      int
	Ring                  int
	Codec                 rpcdelta.Codec
	Reliable, DeliverLate bool
	Prior                 *rpcdelta.Prior // nil where the codec has none
}

// countEvery is the time between two calls of [Tap.Counted].
const countEvery = time.Second

// tapped does what the tap asks for.
func (h *shard) tapped(now time.Time) {
	t := h.server.cfg.Tap
	if h.index == 0 && now.Sub(h.counted) >= countEvery {
		h.counted = now
		h.server.guard(nil, func() { t.Counted(h.server.ln.Stats()) })
	}
	n := h.resets
	h.server.guard(nil, func() { n = t.Resets() })
	if n == h.resets {
		return
	}
	h.resets = n
	for p := range h.players {
		for _, b := range p.bindings {
			if b != nil {
				b.dec.AskReset()
				p.noteAck(b)
			}
		}
	}
}

// discard counts what belongs to no RPC, and tells the tap.
func (p *Player) discard(at time.Time, d Drop) {
	p.drop(d)
	if p.tap != nil {
		p.tap.Dropped(at, -1, d, false)
	}
}

// discardPayload counts a payload of an RPC, and tells the tap.
func (p *Player) discardPayload(b *binding, at time.Time, d Drop, decoder bool) {
	p.dropFrame(b, d, 0)
	if p.tap != nil {
		p.tap.Dropped(at, b.number, d, decoder)
	}
}
