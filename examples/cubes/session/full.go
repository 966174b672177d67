package session

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/schema"
)

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
