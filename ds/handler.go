package ds

import (
	"time"

	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
)

// Frame is one call of an RPC.
type Frame[T any] struct {
	// Value contains the arguments, each rounded to its field's resolution. Byte slices in it are
	// valid only while the handler runs.
	Value T
	// Seq is the frame's sequence number, from 0 when the client binds the RPC.
	Seq uint64
	// Missed is the number of frames that were lost, dropped or rejected between the previous
	// delivered frame and this one, without those for which a frame was repeated.
	Missed uint64
	// Late reports that newer frames were delivered or rejected before, or with a [JitterBuffer]
	// that the frame's tick is over; see [Config.DeliverLate].
	Late bool
	// Repeated reports that the frame of this tick is missing and Value is that of the frame
	// before; see [JitterBuffer]. Seq is the number of the missing frame.
	Repeated bool
	// Redundant reports that the payload of a newer frame, which is delivered next, contained this
	// one: its own payload was lost or is late, or the client batches frames.
	Redundant bool
	// Received is when the datagram arrived.
	Received time.Time
}

// handler is the sink that calls the game's handler at once.
type handler[T any] struct {
	restore  func(*T, *schema.Frame) error
	f        func(*Player, Frame[T])
	validate func(*Player, Frame[T]) error // nil if there is none
	frames   []*Frame[T]                   // by shard; reused with the capacity of their byte slices
}

func (h *handler[T]) deliver(p *Player, b *binding, d *rpcdelta.Delivery, at time.Time) error {
	f := h.frames[p.shard.index]
	f.describe(d, at)
	if err := h.restore(&f.Value, d.Frame); err != nil {
		return err
	}
	h.call(p, b, f)
	return nil
}

// describe sets what a delivery says of the frame besides its value.
func (f *Frame[T]) describe(d *rpcdelta.Delivery, at time.Time) {
	f.Seq, f.Missed, f.Late, f.Redundant, f.Received = d.Seq, d.Missed, d.Late, redundant(d), at
}

// redundant reports whether a newer frame of the payload follows. Only the newest has header bits.
func redundant(d *rpcdelta.Delivery) bool { return d.HeaderBits == 0 }

// call validates a frame and calls the game's handler with it, and reports whether that returned.
// Frames of a kicked player are dropped. A panic ends the player's session.
func (h *handler[T]) call(p *Player, b *binding, f *Frame[T]) (handled bool) {
	if p.kicked.Load() {
		p.dropFrame(b, Kicked, 0)
		return false
	}
	p.server.guard(p, func() {
		if h.accepts(p, b, f) {
			h.f(p, *f)
			handled = true
		}
	})
	return handled
}

// accepts reports whether the validator accepts a frame, and counts rejected frames as missed.
func (h *handler[T]) accepts(p *Player, b *binding, f *Frame[T]) bool {
	if b.rejected != 0 && !f.Late {
		f.Missed += b.rejected
		b.rejected = 0
	}
	if h.validate == nil {
		return true
	}
	err := h.validate(p, *f)
	if err == nil {
		return true
	}
	if !f.Late {
		b.rejected = f.Missed + 1
	}
	p.dropFrame(b, Rejected, 0)
	n := p.Rejected()
	cfg := &p.server.cfg
	if n <= maxRejectedLogged {
		cfg.Logger.Warn("frame rejected", "rpc", b.rpc.schema.RPC(), "seq", f.Seq, "player", p.ID(), "error", err)
	}
	if cfg.MaxRejected != 0 && n >= uint64(cfg.MaxRejected) {
		p.Kick("too many rejected frames")
	}
	return false
}

const maxRejectedLogged = 8
