package rpcdelta

import (
	"errors"
	"fmt"
	"math/rand/v2"
)

// streamConfig is a client, a server and the network between them.
type streamConfig struct {
	Seed           uint64
	Ring, PeerRing int
	RPC            int
	AckEvery       int // frames between acks
	Up, Down       linkConfig
	DeliverLate    bool
	Reliable       bool
	Smooth         bool // frames never jump
}

// stream plays a streamConfig, frame by frame, and checks all that must hold
// whatever the network does.
type stream struct {
	pair
	cfg      streamConfig
	pick     picker
	up, down *link
	now      int

	history  [1 << 10]sentFrame // by sequence
	last     int64              // newest sequence delivered in order, -1 before
	fresh    bool               // the decoder has delivered nothing yet
	restarts int                // of the decoder
	latest   map[uint64]bool    // sequences delivered late, lately

	delivered, late, missed uint64
	kinds                   map[FrameKind]int // as sent
	drops                   map[error]int
	// expected are drops and ack errors that the test provokes; others fail it.
	expected []error
	loose    bool // the epochs may be more than one apart
}

type sentFrame struct {
	info  Info
	frame *Frame
}

func newStream(t failer, s *Schema, cfg streamConfig) *stream {
	t.Helper()
	if cfg.AckEvery == 0 {
		cfg.AckEvery = 1
	}
	x := &stream{
		cfg: cfg, last: -1, fresh: true,
		pair: *newPair(t, s,
			EncoderConfig{RPC: cfg.RPC, Ring: cfg.Ring, PeerRing: cfg.PeerRing, Reliable: cfg.Reliable},
			DecoderConfig{RPC: cfg.RPC, Ring: cfg.PeerRing, DeliverLate: cfg.DeliverLate, Reliable: cfg.Reliable}),
		pick: randPicker(rand.New(rand.NewPCG(cfg.Seed, 1))),
		up:   newLink(cfg.Up, cfg.Seed, 2), down: newLink(cfg.Down, cfg.Seed, 3),
		latest: map[uint64]bool{}, kinds: map[FrameKind]int{}, drops: map[error]int{},
	}
	for i := range x.history {
		x.history[i].frame = s.NewFrame()
	}
	return x
}

// run plays n frames.
func (x *stream) run(t failer, n int) {
	t.Helper()
	for range n {
		x.step(t)
	}
}

func (x *stream) step(t failer) {
	t.Helper()
	x.sendNext(t)
	for _, p := range x.up.receive(x.now) {
		x.take(t, p)
	}
	if x.now%x.cfg.AckEvery == 0 && x.dec.AckDue() {
		x.ack = x.dec.AppendAck(x.ack[:0])
		x.down.send(x.now, x.ack)
	}
	for _, p := range x.down.receive(x.now) {
		a, rest, err := ParseAck(p.b)
		if err != nil || len(rest) != 0 {
			x.fatalf(t, "ack %x: %v", p.b, err)
		}
		if err := x.enc.Ack(a); err != nil {
			x.drop(t, err)
		}
	}
	if apart := (x.enc.epoch - x.dec.epoch) & epochMask; x.dec.started && apart > 1 && !x.loose {
		x.fatalf(t, "epoch %d at the encoder, %d at the decoder", x.enc.epoch, x.dec.epoch)
	}
	x.now++
}

func (x *stream) sendNext(t failer) {
	t.Helper()
	if x.cfg.Smooth || x.pick(49) != 0 {
		x.pick.walk(x.s, x.frame)
	} else {
		x.pick.frame(x.s, x.frame, x.frame)
	}
	h := &x.history[x.enc.next%uint64(len(x.history))]
	h.frame.CopyFrom(x.frame)
	h.info = x.send(t)
	x.kinds[h.info.Kind]++
	if want := x.up.sent; h.info.Seq != want {
		x.fatalf(t, "sequence %d, want %d", h.info.Seq, want)
	}
	if size := h.info.HeaderBits + h.info.PayloadBits; size != 8*len(x.payload) {
		x.fatalf(t, "%+v of %d bytes", h.info, len(x.payload))
	}
	x.up.send(x.now, x.payload)
}

// take gives a payload to the decoder and checks what comes of it.
func (x *stream) take(t failer, p packet) {
	t.Helper()
	out, err := x.dec.Decode(p.b)
	if err != nil {
		if len(out) != 0 {
			x.fatalf(t, "frame %d is delivered along with %v", p.number, err)
		}
		x.drop(t, err)
		if int64(p.number) > x.last && len(x.expected) == 0 {
			x.fatalf(t, "frame %d, newer than %d, is dropped: %v", p.number, x.last, err)
		}
		return
	}
	if len(out) != 1 {
		x.fatalf(t, "%d frames of payload %d", len(out), p.number)
	}
	x.check(t, p.number, &out[0])
}

// check compares a delivery with what was sent, and its place in the order.
func (x *stream) check(t failer, n uint64, d *Delivery) {
	t.Helper()
	h := &x.history[n%uint64(len(x.history))]
	want := h.info
	want.Kind, want.Seq = d.Kind, d.Seq
	switch {
	case h.info.Seq != n:
		x.fatalf(t, "frame %d is too old for this test", n)
	case !d.Frame.Equal(h.frame):
		x.fatalf(t, "frame %d is %v, want %v", n, d.Frame, h.frame)
	case d.Info != want, (d.Kind == Delta) != (h.info.Kind == Delta), uint16(d.Seq) != uint16(n), x.restarts == 0 && d.Seq != n:
		x.fatalf(t, "frame %d is %+v, want %+v", n, d.Info, h.info)
	}
	x.delivered++
	if d.Late {
		x.late++
		if int64(n) >= x.last || x.latest[n] || !x.cfg.DeliverLate {
			x.fatalf(t, "frame %d is late after %d, again: %v", n, x.last, x.latest[n])
		}
		x.latest[n] = true
		return
	}
	if int64(n) <= x.last {
		x.fatalf(t, "frame %d after %d", n, x.last)
	}
	if missed := n - uint64(x.last+1); !x.fresh && d.Missed != missed || x.restarts == 0 && d.Missed != missed {
		x.fatalf(t, "frame %d after %d says that %d are missed", n, x.last, d.Missed)
	}
	x.missed += d.Missed
	x.last, x.fresh = int64(n), false
	x.latest = keepNewer(x.latest, x.last-100)
}

// keepNewer forgets sequences below one, now and then.
func keepNewer(m map[uint64]bool, than int64) map[uint64]bool {
	if len(m) > 1000 {
		for n := range m {
			if int64(n) < than {
				delete(m, n)
			}
		}
	}
	return m
}

func (x *stream) drop(t failer, err error) {
	t.Helper()
	for _, ok := range append(x.expected, ErrLate, ErrDuplicate) {
		if errors.Is(err, ok) {
			x.drops[ok]++
			return
		}
	}
	x.fatalf(t, "dropped: %v", err)
}

func (x *stream) fatalf(t failer, format string, args ...any) {
	t.Helper()
	t.Fatalf("%+v, frame %d: %s", x.cfg, x.now, fmt.Sprintf(format, args...))
}

// restartDecoder puts a fresh decoder in the place of the old one.
func (x *stream) restartDecoder(t failer) {
	t.Helper()
	dec, err := NewDecoder(x.s, x.dec.cfg)
	if err != nil {
		t.Fatal(err)
	}
	x.dec, x.fresh, x.last = dec, true, -1 // and knows nothing of what the old one delivered
	clear(x.latest)
	x.restarts++
}

// deltasIn plays n frames and counts the deltas among those sent.
func (x *stream) deltasIn(t failer, n int) int {
	t.Helper()
	before := x.kinds[Delta]
	x.run(t, n)
	return x.kinds[Delta] - before
}

// smallSchema has frames whose deltas are shorter than their intra frames.
func smallSchema(t failer) *Schema {
	s, err := NewSchema("Small", 60, []Field{
		{Name: "P", Kind: KindVec3, Resolution: 0.01},
		{Name: "A", Kind: KindAngle, Count: 2},
		{Name: "B", Kind: KindBits, Width: 8},
		{Name: "S", Kind: KindBytes, Max: number(12)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
