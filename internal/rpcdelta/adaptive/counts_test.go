package adaptive_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/adaptive"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/cost"
)

// countMeter adds up the cost of frame counts.
type countMeter struct {
	cost.Meter
	bits float64
}

func (m *countMeter) Count(bits float64)                                     { m.bits += bits }
func (*countMeter) Frame(int)                                                {}
func (*countMeter) Flags(int, float64)                                       {}
func (*countMeter) Component(_, _ int, _ float64, _ cost.Predictor, _ int64) {}
func (*countMeter) Contents(int, float64)                                    {}

// TestCounts checks that the number of frames of a payload costs next to nothing once it repeats,
// whatever it is, and that any number can follow.
func TestCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := adaptive.Generic().Compile(vehicleFields)
		e := newEnd(m, vehicleFields, 0)
		d := newEnd(m, vehicleFields, 0)
		count := rapid.IntRange(1, adaptive.MaxFrames).Draw(t, "count")
		repeats := rapid.Bool().Draw(t, "repeats")
		other := rapid.IntRange(1, adaptive.MaxFrames).Draw(t, "other")
		frames := smoothFrames(100 * adaptive.MaxFrames)
		base, hasBase := uint64(0), false
		next := 0
		for i := range 60 {
			n := count
			if i == 59 {
				n = other
			}
			in := frames[next : next+n]
			next += n
			newest := uint64(next - 1)
			b := e.encode(nil, in, newest, base, hasBase)
			if i >= 40 && i < 59 {
				var meter countMeter
				p := adaptive.Payload{Frames: in, Newest: newest, Base: base, HasBase: hasBase, Repeats: repeats && n > 1}
				if e.coder.Measure(&meter, &p, e.state, e.known); meter.bits > 1 {
					t.Fatalf("payload %d of %d frames: their number costs %.2f bits", i, n, meter.bits)
				}
			}
			out := newFrames(vehicleFields)
			got, err := d.decode(out, b, newest, base, hasBase)
			if err != nil || got != n {
				t.Fatalf("payload %d: %d frames, want %d; %v", i, got, n, err)
			}
			for k, f := range in {
				var shape adaptive.Shape
				if k == n-1 {
					shape = adaptive.Shape{Frames: uint8(n), Repeats: repeats && n > 1}
				}
				seq := newest + 1 - uint64(n-k)
				e.known.Put(seq, f, shape)
				d.known.Put(seq, out[k], shape)
			}
			base, hasBase = newest, true
			e.state.Learn(base, e.known)
			d.state.Learn(base, d.known)
		}
	})
}
