package conformance

import (
	"context"
	"math"
	"strings"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/conformance/protocol"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// testValues quantizes and restores values: random ones, and ones at and beyond the limits.
func testValues(ctx context.Context, t *tester) error {
	return t.each(ctx, "schema", func(n int) error {
		s := t.randomSchema(n)
		h, err := t.schema(s)
		if err != nil {
			return err
		}
		f := s.NewFrame()
		t.pick.Frame(s, f, s.NewFrame())
		for range t.options.Frames / 4 {
			t.pick.Frame(s, f, f)
			if err := t.values(h, s, f); err != nil {
				return err
			}
		}
		_, err = t.must("free", h)
		return err
	})
}

// values restores a frame, and quantizes values close to the restored ones.
func (t *tester) values(h string, s *schema.Schema, f *schema.Frame) error {
	got, err := t.must("restore", h, protocol.Frame(f))
	if err != nil {
		return err
	}
	word := protocol.ValuesOf(s, f)
	t.check(closeValues(got, word), "restore %s: %s, want %s", protocol.Frame(f), got, word)
	word = t.disturb(s, word)
	want, refused := protocol.Quantize(s, word)
	got, dropped, err := t.ask("quantize", h, word)
	if err != nil {
		return err
	}
	if refused != nil || dropped {
		t.check(dropped == (refused != nil), "quantize %s: %s, want %v", word, got, refused)
		return nil
	}
	frame, err := protocol.ParseFrame(s, got)
	t.check(err == nil && t.nearest(s, word, frame, want), "quantize %s: %s, want %s", word, got, protocol.Frame(want))
	return nil
}

// disturb changes values by up to a step, or replaces them by special values.
func (t *tester) disturb(s *schema.Schema, word string) string {
	parts, at := strings.Split(word, ","), 0
	for i, field := range s.Fields() {
		l := &s.Layouts()[i]
		for k := range field.Values() {
			if v, err := protocol.ParseDouble(parts[at+k]); err == nil && l.Class != schema.ClassInteger && l.Class != schema.ClassBytes {
				parts[at+k] = protocol.Double(t.disturbed(l, v))
			}
		}
		at += field.Values()
	}
	return strings.Join(parts, ",")
}

func (t *tester) disturbed(l *schema.Layout, v float64) float64 {
	step := 1 / float64(int64(1)<<max(l.Bits, 1))
	if l.Scale != 0 {
		step = 1 / l.Scale
	}
	switch t.rng.IntN(60) {
	case 0:
		return []float64{math.NaN(), math.Inf(1), math.Inf(-1)}[t.rng.IntN(3)]
	case 1:
		return []float64{math.MaxFloat64, -1e300, math.Copysign(0, -1), math.SmallestNonzeroFloat64}[t.rng.IntN(4)]
	case 2:
		return v + step*float64(1+t.rng.IntN(1000))
	}
	return v + step*(t.rng.Float64()-0.5)*0.998
}

// closeValues compares values with a tolerance for the last bits of floating point.
func closeValues(got, want string) bool {
	a, b := strings.Split(got, ","), strings.Split(want, ",")
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, err1 := protocol.ParseDouble(a[i])
		y, err2 := protocol.ParseDouble(b[i])
		if a[i] != b[i] && (err1 != nil || err2 != nil || math.Abs(x-y) > 1e-9*max(1, math.Abs(y))) {
			return false
		}
	}
	return true
}

// nearest reports whether a frame is as good a quantization of values as another one.
func (t *tester) nearest(s *schema.Schema, word string, got, want *schema.Frame) bool {
	for i, b := range got.Bytes {
		if string(b) != string(want.Bytes[i]) {
			return false
		}
	}
	parts, at := strings.Split(word, ","), 0
	for i, field := range s.Fields() {
		l := &s.Layouts()[i]
		values := parts[at : at+field.Values()]
		at += field.Values()
		for k := range l.N {
			a, b := got.Ints[l.At+k], want.Ints[l.At+k]
			switch {
			case a == b:
			case l.Class == schema.ClassInteger, l.Class == schema.ClassBytes:
				return false
			case l.Class == schema.ClassQuat || field.Kind == schema.KindUnitVec:
				if !sameDirection(s, i, got, want, l.Bits) {
					return false
				}
			default:
				v, err := protocol.ParseDouble(values[k])
				middle := math.Abs(math.Mod(v*l.Scale, 1))
				if err != nil || math.Abs(middle-0.5) > 0.001 || max(a-b, b-a) > 1 && l.Class != schema.ClassAngle {
					return false
				}
			}
		}
	}
	return true
}

// sameDirection reports whether an orientation or direction differs no more than quantization
// permits. If two elements of a quaternion are nearly equal, either may be the largest.
func sameDirection(s *schema.Schema, i int, a, b *schema.Frame, bits uint) bool {
	x, y := s.RestoreField(nil, a, i), s.RestoreField(nil, b, i)
	same, opposite := 0.0, 0.0
	for k := range x {
		same, opposite = max(same, math.Abs(x[k]-y[k])), max(opposite, math.Abs(x[k]+y[k]))
	}
	return min(same, opposite) <= 4/float64(int64(1)<<bits)
}

// testAcks compares how both implementations parse random and damaged acks.
func testAcks(ctx context.Context, t *tester) error {
	return t.each(ctx, "acks", func(int) error {
		for range t.options.Frames {
			b := t.randomAck()
			if t.rng.IntN(3) == 0 {
				b = t.damaged(b)
			}
			b = append(b, make([]byte, t.rng.IntN(3))...)
			a, rest, parsed := rpcdelta.ParseAck(b)
			got, dropped, err := t.ask("parseack", protocol.Bytes(b))
			switch {
			case err != nil:
				return err
			case parsed != nil:
				t.check(dropped, "%x is parsed as %s; it is malformed", b, got)
			default:
				want := protocol.Ack(&a, len(b)-len(rest))
				t.check(!dropped && got == want, "%x: %s, want %s", b, got, want)
			}
		}
		return nil
	})
}

func (t *tester) randomAck() []byte {
	a := rpcdelta.Ack{RPC: uint8(t.rng.IntN(64) >> t.rng.IntN(7)), Epoch: uint8(t.rng.IntN(8)), Seq: uint16(t.rng.Uint32())}
	switch t.rng.IntN(8) {
	case 0:
		a.None, a.Seq = true, 0
	default:
		a.Len = t.rng.IntN(64)
		a.Window = (1<<a.Len - 1) &^ (t.rng.Uint64() & t.rng.Uint64() & t.rng.Uint64())
		a.Whole = t.rng.IntN(4) == 0
	}
	if t.rng.IntN(6) == 0 {
		a.ResetReason = []error{rpcdelta.ErrBaselineMissing, rpcdelta.ErrDesync}[t.rng.IntN(2)]
	}
	if a.ResetReason == nil && a.RPC < 8 && a.Len < 63 && !a.Whole {
		a.Seq &= 1<<10 - 1
	}
	return a.Append(nil)
}

// damaged returns a damaged copy of b: bits flipped, truncated, extended or replaced.
func (t *tester) damaged(b []byte) []byte {
	b = append([]byte(nil), b...)
	switch t.rng.IntN(4) {
	case 0:
		return b[:t.rng.IntN(len(b)+1)]
	case 1:
		return append(b, byte(t.rng.Uint32()))
	case 2:
		for i := range b {
			b[i] = byte(t.rng.Uint32())
		}
	default:
		for range 1 + t.rng.IntN(3) {
			if len(b) > 0 {
				b[t.rng.IntN(len(b))] ^= 1 << t.rng.IntN(8)
			}
		}
	}
	return b
}
