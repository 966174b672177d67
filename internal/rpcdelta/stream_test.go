package rpcdelta

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/inspect"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/wire"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/schematest"
)

// streamConfig describes a client, a server and the network between them.
type streamConfig struct {
	Seed           uint64
	Codec          Codec
	Redundancy     int
	Prior          *prior.Prior
	Ring, PeerRing int
	RPC            int
	AckEvery       int // frames between acks
	Every          int // frames a payload; 0: 1; below 0: 1 to as many, at random
	Up, Down       linkConfig
	DeliverLate    bool
	Reliable       bool
	Smooth         bool // frames never jump
}

// stream plays a streamConfig frame by frame and checks the invariants that hold on any network.
type stream struct {
	pair
	cfg      streamConfig
	pick     schematest.Picker
	up, down *link
	now      int

	history  [1 << 10]streamFrame // by sequence
	sent     uint64               // frames, those held back included
	names    []uint64             // of the payloads, by packet number
	last     int64                // newest sequence delivered in order, -1 before
	fresh    bool                 // the decoder has delivered nothing yet
	restarts int                  // of the decoder
	compared int                  // acks after which both ends had learned the same

	learned   map[uint16]uint16 // by the encoder: hashes by the newest frame
	learnedIn uint8             // epoch

	delivered, late, missed uint64
	older                   int               // frames sent as older ones
	kinds                   map[FrameKind]int // as sent
	drops                   map[error]int
	// expected are drops and ack errors that the test provokes; others fail it.
	expected []error
	loose    bool // the epochs may be more than one apart, and what both ends learned
	wrong    uint64
}

type streamFrame struct {
	seq   uint64
	info  Info // of the payload of its name; Seq is another if there is none
	frame *schema.Frame
	got   bool // the decoder has delivered it
}

func newStream(t failer, s *schema.Schema, cfg streamConfig) *stream {
	t.Helper()
	if cfg.AckEvery == 0 {
		cfg.AckEvery = 1
	}
	x := &stream{
		cfg: cfg, last: -1, fresh: true,
		pair: *newPair(t, s,
			EncoderConfig{Codec: cfg.Codec, Redundancy: cfg.Redundancy, Prior: cfg.Prior, RPC: cfg.RPC, Ring: cfg.Ring, PeerRing: cfg.PeerRing, Reliable: cfg.Reliable},
			DecoderConfig{RPC: cfg.RPC, Ring: cfg.PeerRing, DeliverLate: cfg.DeliverLate, Reliable: cfg.Reliable}),
		pick: schematest.FromRand(rand.New(rand.NewPCG(cfg.Seed, 1))),
		up:   newLink(cfg.Up, cfg.Seed, 2), down: newLink(cfg.Down, cfg.Seed, 3),
		learned: map[uint16]uint16{}, kinds: map[FrameKind]int{}, drops: map[error]int{},
	}
	if cfg.Every != 0 && cfg.Every != 1 {
		x.up.frames = MaxHeld
	}
	for i := range x.history {
		x.history[i].frame = s.NewFrame()
	}
	return x
}

// run plays n frames.
func (x *stream) run(t failer, n int) {
	for range n {
		x.step(t)
	}
}

func (x *stream) step(t failer) {
	x.sendNext(t)
	for _, p := range x.up.receive(x.now) {
		x.receive(t, p)
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
		x.compare(t)
	}
	if apart := (x.enc.epoch - x.dec.epoch) & wire.EpochMask; x.dec.processed.Any && apart > 1 && !x.loose {
		x.fatalf(t, "epoch %d at the encoder, %d at the decoder", x.enc.epoch, x.dec.epoch)
	}
	x.now++
}

// compare checks that both ends learned the same up to the frame that the decoder learned last, if
// that was also the last that the encoder learned at some time.
func (x *stream) compare(t failer) {
	e, ok := x.enc.coder.(*adaptiveCoder)
	if !ok || x.loose {
		return
	}
	d := x.dec.coder.(*adaptiveCoder)
	if x.learnedIn != x.enc.epoch {
		x.learnedIn = x.enc.epoch
		clear(x.learned)
	}
	if seq, ok := e.state.Newest(); ok {
		x.learned[uint16(seq)] = e.hash()
	}
	seq, ok := d.state.Newest()
	want, known := x.learned[uint16(seq)]
	if !ok || !known || x.enc.epoch != x.dec.epoch || errors.Is(x.dec.resetReason, ErrDesync) || seq < x.dec.first {
		return
	}
	if got := d.state.Hash(); got != want {
		x.fatalf(t, "up to frame %d the encoder learned %04x, the decoder %04x", seq, want, got)
	}
	x.compared++
}

// at returns the record of frame n.
func (x *stream) at(n uint64) *streamFrame { return &x.history[n%uint64(len(x.history))] }

func (x *stream) sendNext(t failer) {
	if x.cfg.Smooth || x.pick(49) != 0 {
		x.pick.Walk(x.s, x.frame)
	} else {
		x.pick.Frame(x.s, x.frame, x.frame)
	}
	h := x.at(x.sent)
	h.frame.CopyFrom(x.frame)
	h.seq, h.got, h.info = x.sent, false, Info{Seq: x.sent + 1}
	x.sent++
	if x.holds() {
		must(t, x.enc.Hold(x.frame))
		return
	}
	x.sendPayload(t, x.send(t))
	for x.enc.Held() > 0 {
		var info Info
		x.payload, info = x.enc.AppendHeld(x.payload[:0])
		x.sendPayload(t, info)
	}
}

// holds reports whether the next frame is held back.
func (x *stream) holds() bool {
	n := x.enc.Held() + 1
	if x.cfg.Every < 0 {
		return n < -x.cfg.Every && x.pick(int64(-x.cfg.Every)) != 0
	}
	return n < x.cfg.Every
}

// sendPayload sends a payload and records its contents.
func (x *stream) sendPayload(t failer, info Info) {
	if info.Held > info.Redundant || x.sent-uint64(x.enc.Held())-1 != info.Seq || x.at(info.Seq).seq != info.Seq {
		x.fatalf(t, "%+v after %d frames", info, x.sent)
	}
	x.at(info.Seq).info = info
	x.kinds[info.Kind]++
	x.older += info.Redundant - info.Held
	if size := info.HeaderBits + info.PayloadBits; size != 8*len(x.payload) {
		x.fatalf(t, "%+v of %d bytes", info, len(x.payload))
	}
	full := 0
	for q := info.Seq - uint64(info.Held); q <= info.Seq; q++ {
		full += inspect.FullBits(x.s, x.at(q).frame)
	}
	if info.FullBits != full {
		x.fatalf(t, "%+v, want %d bits in full", info, full)
	}
	x.names = append(x.names, info.Seq)
	x.up.send(x.now, x.payload)
}

// receive passes a payload to the decoder and checks the result.
func (x *stream) receive(t failer, p packet) {
	n := x.names[p.number]
	out, err := x.dec.Decode(p.b)
	if err != nil {
		if len(out) != 0 {
			x.fatalf(t, "frame %d is delivered along with %v", n, err)
		}
		x.drop(t, err)
		if int64(n) > x.last && len(x.expected) == 0 {
			x.fatalf(t, "frame %d, newer than %d, is dropped: %v", n, x.last, err)
		}
		return
	}
	x.checkAll(t, n, out)
}

// checkAll compares the deliveries of payload n with the frames sent.
func (x *stream) checkAll(t failer, n uint64, out []Delivery) {
	h := x.at(n)
	if h.info.Seq != n {
		x.fatalf(t, "payload %d is too old for this test", n)
	}
	if x.loose && out[len(out)-1].Redundant != h.info.Redundant { // decoded from another state
		for i := range out {
			x.history[out[i].Seq%uint64(len(x.history))].got = true
		}
		x.wrong += uint64(len(out))
		x.last, x.fresh = int64(n), true
		return
	}
	if !out[0].Late && (!x.fresh || x.last < 0) { // all of it that is new
		if want := min(int64(n)-x.last, int64(h.info.Redundant+1)); int64(len(out)) != want {
			x.fatalf(t, "%d frames of payload %d after %d, which has %d older ones, want %d", len(out), n, x.last, h.info.Redundant, want)
		}
	}
	if d := &out[len(out)-1]; d.HeaderBits != h.info.HeaderBits || d.PayloadBits != h.info.PayloadBits || d.Redundant != h.info.Redundant {
		x.fatalf(t, "payload %d is %+v, want %+v", n, d.Info, h.info)
	}
	for i := range out {
		x.check(t, n, &out[i])
	}
}

// check compares a delivery of payload n with the frame sent, and checks the order.
func (x *stream) check(t failer, n uint64, d *Delivery) {
	sent := &x.at(n).info
	n -= uint64(uint16(n) - uint16(d.Seq)) // a decoder that restarted counts from elsewhere
	h := x.at(n)
	switch {
	case h.seq != n, sent.Seq-n > uint64(sent.Redundant), x.restarts == 0 && d.Seq != n:
		x.fatalf(t, "frame %d is in payload %+v", n, sent)
	case !d.Frame.Equal(h.frame) && x.loose:
		x.wrong++
	case !d.Frame.Equal(h.frame):
		x.fatalf(t, "frame %d is %v, want %v", n, d.Frame, h.frame)
	case h.got:
		x.fatalf(t, "frame %d is delivered again", n)
	case d.Late && (!x.cfg.DeliverLate || int64(n) >= x.last || d.Missed != 0):
		x.fatalf(t, "frame %d is late after %d: %+v", n, x.last, d)
	}
	x.checkInfo(t, n, sent, &d.Info)
	h.got = true
	x.delivered++
	if d.Late {
		x.late++
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
}

// checkInfo compares the Info of frame n with that of its payload at the encoder.
func (x *stream) checkInfo(t failer, n uint64, sent, got *Info) {
	kind, age := Delta, 0
	switch {
	case sent.Kind == Delta:
		age = sent.BaselineAge - int(sent.Seq-n)
	case got.Kind == Reset && n == sent.Seq:
		kind = Reset
	default:
		kind = Keyframe
	}
	if got.Kind != kind || got.BaselineAge != age || got.FullBits != inspect.FullBits(x.s, x.at(n).frame) && !x.loose {
		x.fatalf(t, "frame %d is %+v of payload %+v", n, got, sent)
	}
}

func (x *stream) drop(t failer, err error) {
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

// restartDecoder replaces the decoder by a new one.
func (x *stream) restartDecoder(t failer) {
	t.Helper()
	x.restart(t)
	x.fresh, x.last = true, -1 // it does not know what the old one delivered
	for i := range x.history {
		x.history[i].got = false
	}
	if x.dec.cfg.Codec == Adaptive {
		x.up.queue = x.up.queue[:0] // a new session: payloads to the old one do not arrive
	}
	x.restarts++
}

// deltasIn plays n frames and returns the number of deltas sent.
func (x *stream) deltasIn(t failer, n int) int {
	t.Helper()
	before := x.kinds[Delta]
	x.run(t, n)
	return x.kinds[Delta] - before
}

var smallFields = []schema.Field{
	{Name: "P", Kind: schema.KindVec3, Resolution: 0.01},
	{Name: "A", Kind: schema.KindAngle, Count: 2},
	{Name: "B", Kind: schema.KindBits, Width: 8},
	{Name: "S", Kind: schema.KindBytes, Max: new(12.0)},
}

// smallSchema returns a schema whose deltas are shorter than its keyframes.
func smallSchema(t failer) *schema.Schema {
	s, err := schema.New("Small", 60, smallFields)
	must(t, err)
	return s
}
