package session

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
)

const maxSnapshot = 1 << 16

// snapshotSender codes each snapshot against a baseline that the client acknowledged.
type snapshotSender struct {
	pacer
	world  *snapshot.World[world.Visual]
	sender *snapshot.Sender
	buf    []byte
}

// snapshotReceiver interpolates linearly, because the rate of snapshots is high.
type snapshotReceiver struct {
	playback
	receiver   *snapshot.Receiver[world.Visual]
	ackPending bool
}

func newSnapshots(initial []world.Body, o Options) (Sender, Receiver, error) {
	first := func(put put) error { return fill(put, initial) }
	w, err := snapshot.NewWorld("Cube", first)
	if err != nil {
		return nil, nil, err
	}
	r, err := snapshot.NewReceiver("Cube", first)
	if err != nil {
		return nil, nil, err
	}
	p, err := newPlayback(len(initial), interpolate.Linear, o)
	return &snapshotSender{pacer: newPacer(o), world: w, sender: w.NewSender()}, &snapshotReceiver{playback: p, receiver: r}, err
}

type put = func(id uint16, generation uint8, v *world.Visual) error

func fill(put put, bodies []world.Body) error {
	var seen world.Visual
	for i := range bodies {
		seen.FromBody(&bodies[i])
		if err := put(uint16(i), 0, &seen); err != nil {
			return err
		}
	}
	return nil
}

func (s *snapshotSender) Send(f *Frame, emit func([]byte)) error {
	if !s.due(f.Tick, 0) {
		return nil
	}
	s.world.Begin()
	if err := fill(s.world.Put, f.Bodies); err != nil {
		return err
	}
	b, err := s.sender.Append(appendTick(s.buf[:0], f.Tick), maxSnapshot)
	if err != nil {
		return err
	}
	s.buf = b
	s.spent(len(b))
	emit(b)
	return nil
}

func (s *snapshotSender) Ack(b []byte) error { return s.sender.Ack(b) }

func (r *snapshotReceiver) Ack(dst []byte) []byte {
	if !r.ackPending {
		return dst
	}
	r.ackPending = false
	return r.receiver.AppendAck(dst)
}

func (r *snapshotReceiver) Receive(at time.Duration, message []byte) error {
	tick, b, err := parseTick(message, r.newest)
	if err != nil {
		return err
	}
	s, err := r.receiver.Decode(b)
	switch {
	case errors.Is(err, snapshot.ErrLate):
		return nil
	case err != nil:
		return err
	case len(s.Objects) != len(r.cubes):
		return fmt.Errorf("snapshot has %d cubes, want %d", len(s.Objects), len(r.cubes))
	}
	r.ackPending = true
	for i := range r.cubes {
		r.cubes[i] = s.Objects[i].State
	}
	return r.add(at, tick)
}

// pacer limits messages to a rate and a budget.
type pacer struct {
	every  int
	budget int     // bits per second; 0 means no limit
	credit float64 // bits
}

func newPacer(o Options) pacer { return pacer{every: world.TickRate / o.Rate, budget: o.Budget} }

// SetBudget implements Sender.
func (p *pacer) SetBudget(bits int) { p.budget = bits }

// due charges sent bytes and reports whether a message may be sent. Call it once per tick.
func (p *pacer) due(tick, sent int) bool {
	if p.budget > 0 {
		p.credit = min(p.credit+float64(p.budget)/world.TickRate, float64(p.budget)/4) - 8*float64(sent)
	}
	return tick%p.every == 0 && (p.budget == 0 || p.credit >= 0)
}

// spent accounts for a message of a size in bytes.
func (p *pacer) spent(bytes int) {
	if p.budget > 0 {
		p.credit -= 8 * float64(wireSize(bytes))
	}
}

// playback interpolates between received snapshots.
type playback struct {
	buffer *interpolate.Buffer[world.Visual]
	sample interpolate.Sample[world.Visual]
	ids    []uint32
	cubes  []world.Visual
	newest int // tick
	fresh  bool
}

func newPlayback(count int, method interpolate.Method, o Options) (playback, error) {
	buffer, err := interpolate.New(world.PoseAdapter{}, interpolate.Config{
		Interval: o.Interval(), Method: method, Jitter: o.Jitter, Loss: o.Loss, Adaptive: true,
		MaxDelay: max(time.Second, 8*o.Interval()), Objects: count,
	})
	p := playback{buffer: buffer, ids: make([]uint32, count), cubes: make([]world.Visual, count)}
	for i := range p.ids {
		p.ids[i] = uint32(i)
	}
	return p, err
}

// add adds the snapshot of a tick, which cubes contains, to the buffer.
func (p *playback) add(at time.Duration, tick int) error {
	p.newest, p.fresh = max(p.newest, tick), true
	err := p.buffer.Add(at, world.TickTime(tick), p.ids, p.cubes)
	if errors.Is(err, interpolate.ErrLate) {
		return nil
	}
	return err
}

func (p *playback) Draw(now time.Duration, drawn []world.Visual) (time.Duration, bool) {
	if !p.buffer.Sample(now, &p.sample) {
		return 0, false
	}
	copy(drawn, p.sample.Objects)
	return p.sample.Time, true
}

// Motion returns false: nothing is simulated.
func (p *playback) Motion(int) (schema.Vec3, bool) { return schema.Vec3{}, false }

// Updated reports all cubes after a snapshot, which contains every one.
func (p *playback) Updated(f func(cube int)) {
	if !p.fresh {
		return
	}
	p.fresh = false
	for i := range p.cubes {
		f(i)
	}
}

// tickSize is the size of the tick at the start of a snapshot message, in bytes.
const tickSize = 2

var errShort = errors.New("message is too short")

func appendTick(dst []byte, tick int) []byte {
	return binary.LittleEndian.AppendUint16(dst, uint16(tick))
}

// parseTick returns the tick closest to newest whose low 16 bits are first, and the rest.
func parseTick(b []byte, newest int) (tick int, rest []byte, err error) {
	if len(b) < tickSize {
		return 0, nil, errShort
	}
	d := int16(binary.LittleEndian.Uint16(b) - uint16(newest))
	return newest + int(d), b[tickSize:], nil
}

// fullSize is the size of a cube in a full snapshot, in bytes: ten floats and one byte of flags.
const fullSize = 10*4 + 1

// fullSender sends every cube without compression.
type fullSender struct {
	pacer
	buf []byte
}

// fullReceiver interpolates on Hermite splines, because the rate of snapshots is low.
type fullReceiver struct{ playback }

func newFull(initial []world.Body, o Options) (Sender, Receiver, error) {
	p, err := newPlayback(len(initial), interpolate.Hermite, o)
	return &fullSender{pacer: newPacer(o)}, &fullReceiver{playback: p}, err
}

func (s *fullSender) Send(f *Frame, emit func([]byte)) error {
	if !s.due(f.Tick, 0) {
		return nil
	}
	b := appendTick(s.buf[:0], f.Tick)
	var seen world.Visual
	for i := range f.Bodies {
		seen.FromBody(&f.Bodies[i])
		b = appendFull(b, &seen)
	}
	s.buf = b
	s.spent(len(b))
	emit(b)
	return nil
}

func (s *fullSender) Ack([]byte) error { return nil }

func (r *fullReceiver) Ack(dst []byte) []byte { return dst }

func (r *fullReceiver) Receive(at time.Duration, message []byte) error {
	tick, b, err := parseTick(message, r.newest)
	if err != nil {
		return err
	}
	if len(b) != fullSize*len(r.cubes) {
		return fmt.Errorf("full snapshot has %d bytes, want %d", len(b), fullSize*len(r.cubes))
	}
	for i := range r.cubes {
		parseFull(&r.cubes[i], b[i*fullSize:])
	}
	return r.add(at, tick)
}

func appendFull(b []byte, s *world.Visual) []byte {
	p, q, v := &s.Position, &s.Orientation, &s.Velocity
	for _, x := range [...]float64{p.X, p.Y, p.Z, q.X, q.Y, q.Z, q.W, v.X, v.Y, v.Z} {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)))
	}
	if s.Interacting {
		return append(b, 1)
	}
	return append(b, 0)
}

func parseFull(s *world.Visual, b []byte) {
	var x [10]float64
	for i := range x {
		x[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
	}
	*s = world.Visual{
		Position:    schema.Vec3{X: x[0], Y: x[1], Z: x[2]},
		Orientation: schema.Quat{X: x[3], Y: x[4], Z: x[5], W: x[6]},
		Velocity:    schema.Vec3{X: x[7], Y: x[8], Z: x[9]},
		Interacting: b[fullSize-1] != 0,
	}
}
