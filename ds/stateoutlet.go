package ds

import (
	"errors"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/fragment"
	"github.com/uplink-rpc/uplink/internal/worlds"
	"github.com/uplink-rpc/uplink/snapshot"
	"github.com/uplink-rpc/uplink/statesync"
	"github.com/uplink-rpc/uplink/transport"
)

// leastState is how many bytes of state a message has room for at least: with fewer, headers take most of the bandwidth.
const leastState = 72

// stateTerms are those of a world's state, and what both ends know by them.
type stateTerms struct {
	terms  terms
	shared *worlds.States
}

// stateWay is a world's to one player, by state. Its settings are guarded by the downstream's mutex.
type stateWay struct {
	world   *world
	offered *stateTerms
	player  *Player

	cfg    StateConfig
	viewer uint16
	sees   bool
	first  uint64 // of the messages to come, should the client begin to take part anew
	epoch  uint8  // of these
}

func (w *stateWay) terms() *terms { return &w.offered.terms }

func (w *stateWay) outlet() outlet {
	cfg := w.offered.shared.Config
	cfg.Ticks, cfg.NoDelta = w.cfg.InputTicks, w.cfg.NoDelta
	cfg.First, cfg.Epoch = w.first, w.epoch
	sender, err := statesync.NewSender(w.offered.shared.Schema, cfg)
	if err != nil {
		panic(err) // StatesOf made one of the same, and the offer checked the rest
	}
	if w.sees {
		sender.SetViewer(w.viewer)
	}
	o := &stateOutlet{way: w, sender: sender, left: time.Now()}
	o.limit()
	return o
}

// stateOutlet codes a world's state for one player.
type stateOutlet struct {
	way    *stateWay
	sender *statesync.Sender
	next   uint64    // of the world's ticks, after the newest that was sent
	left   time.Time // when the last message did, or the client began to take part
	fates  fates
	ticks  worlds.Ticks
	last   statesync.Info
	starts uint64 // of the sender, as counted
	est    estimate
}

// limit takes the bandwidth from the settings.
func (o *stateOutlet) limit() {
	c := &o.way.cfg
	o.est.limit(float64(c.MinBandwidth), float64(c.Bandwidth))
}

// bandwidth is in bits a second.
func (o *stateOutlet) bandwidth() float64 { return o.est.rate }

func (o *stateOutlet) append(dst []byte, limit int) ([]byte, error) {
	w := o.way.world
	if w.begun == o.next {
		return dst, errNothing
	}
	now := time.Now()
	o.est.step(now)
	bytes, most := o.room(now)
	if bytes < most && bytes < leastState {
		return dst, errNothing
	}
	if err := o.sender.SetBudget(max(1, min(bytes, limit, statesync.MaxPacket))); err != nil {
		return dst, err
	}
	out, info, err := o.sender.Append(dst, int64(w.last), w.newest)
	if errors.Is(err, statesync.ErrBudget) && bytes < most {
		return dst, errNothing // there will be more room
	}
	if err != nil {
		return dst, err
	}
	o.next, o.left, o.last = w.begun, now, info
	o.way.first, o.way.epoch = o.sender.Next()
	o.fates.sent(info.Seq)
	o.ticks.Set(info.Seq, w.last)
	o.est.departed(info.Seq, o.wire(info.Bytes), now)
	return out, nil
}

// room is how many bytes of state a message may have now, and how many it ever may: by the bandwidth since the last one
// left, but no more than one datagram, or than what is due at the rate of sending.
func (o *stateOutlet) room(now time.Time) (bytes, most int) {
	each := o.est.rate / 8 / o.way.terms().offer.RateHz
	largest := max(each, float64(o.wire(transport.MaxPayload-1)))
	due := min(o.est.rate/8*now.Sub(o.left).Seconds(), largest)
	return o.payload(int(due)), o.payload(int(largest))
}

// wire is how many bytes a message takes, headers down to IP included.
func (o *stateOutlet) wire(bytes int) int {
	one := transport.IPSize + transport.HeaderSize + o.way.player.overhead + 1
	if bytes < transport.MaxPayload {
		return one + bytes
	}
	parts := (bytes + control.MaxPart - 1) / control.MaxPart
	return parts*(one+fragment.HeaderSize) + bytes
}

// payload is the size of the largest message that takes no more bytes than that.
func (o *stateOutlet) payload(wire int) int {
	one := transport.IPSize + transport.HeaderSize + o.way.player.overhead + 1
	whole := min(wire-one, transport.MaxPayload-1)
	full := one + fragment.HeaderSize + control.MaxPart
	parts, rest := wire/full, wire%full
	return max(0, whole, parts*control.MaxPart+max(0, rest-one-fragment.HeaderSize))
}

func (o *stateOutlet) ack(b []byte) (int, error) {
	a, rest, err := statesync.ParseAck(b)
	if err == nil && len(rest) > 0 {
		err = snapshot.ErrMalformed
	}
	before := o.sender.Stats().Acks
	if err == nil {
		err = o.sender.Ack(a)
	}
	if err != nil || o.sender.Stats().Acks == before { // or it is of another epoch
		return 0, err
	}
	o.est.acked(a.Newest, a.Window, time.Now())
	return o.fates.acked(a.None, a.Newest, a.Window), nil
}

func (o *stateOutlet) note(st *ReplicationStats) {
	st.BaselineAge = o.ticks.Age(o.last.Seq, o.last.Baseline)
	st.Updates += uint64(len(o.last.Objects))
	starts := o.sender.Stats().Starts
	st.Resets += starts - o.starts
	o.starts = starts
}
