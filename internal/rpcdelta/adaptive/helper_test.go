package adaptive_test

import (
	"math/rand/v2"
	"slices"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/adaptive"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// vehicleFields is a frame of 20 components, as a vehicle may send.
var vehicleFields = []adaptive.Field{
	{Kind: adaptive.Number, At: 0, N: 3, Lo: -1 << 22, Hi: 1 << 22, VelocityAt: 3, PerTick: schema.StepsPerTick(1. / 60)},
	{Kind: adaptive.Number, At: 3, N: 3, Lo: -1 << 22, Hi: 1 << 22, VelocityAt: -1},
	{Kind: adaptive.Quat, At: 6, N: 4, Hi: 1<<11 - 1, Bits: 12, VelocityAt: 10, PerTick: schema.RadiansPerTick(.01 / 60)},
	{Kind: adaptive.Number, At: 10, N: 3, Lo: -1 << 22, Hi: 1 << 22, VelocityAt: -1},
	{Kind: adaptive.Angle, At: 13, N: 2, Bits: 16, VelocityAt: -1},
	{Kind: adaptive.Number, At: 15, N: 2, Lo: -1 << 15, Hi: 1 << 15, Scalar: true, VelocityAt: -1},
	{Kind: adaptive.Integer, At: 17, N: 1, Bits: 32, VelocityAt: -1},
	{Kind: adaptive.Bits, At: 18, N: 1, Bits: 16, VelocityAt: -1},
	{Kind: adaptive.Integer, At: 19, N: 1, Bits: 8, VelocityAt: -1},
}

// allKinds has fields of every kind with every option.
var allKinds = []adaptive.Field{
	{Kind: adaptive.Bytes, Blob: 0, MaxBytes: 40, VelocityAt: -1},
	{Kind: adaptive.Bytes, Blob: 1, MinBytes: 4, MaxBytes: 4, VelocityAt: -1},
	{Kind: adaptive.Quat, At: 0, N: 4, Hi: 1<<9 - 1, Bits: 10, VelocityAt: -1},
	{Kind: adaptive.Angle, At: 4, N: 2, Bits: 12, VelocityAt: 22, PerTick: schema.StepsPerTick(3.7 / 30)},
	{Kind: adaptive.Integer, At: 6, N: 2, Bits: 64, VelocityAt: -1},
	{Kind: adaptive.Integer, At: 8, N: 2, Bits: 40, Signed: true, VelocityAt: -1},
	{Kind: adaptive.Integer, At: 10, N: 3, Bits: 7, Signed: true, VelocityAt: -1},
	{Kind: adaptive.Bits, At: 13, N: 1, Bits: 1, VelocityAt: -1},
	{Kind: adaptive.Bits, At: 14, N: 2, Bits: 50, VelocityAt: -1},
	{Kind: adaptive.Number, At: 16, N: 1, Lo: -1<<31 + 1, Hi: 1<<31 - 1, VelocityAt: -1},
	{Kind: adaptive.Number, At: 17, N: 2, Lo: -511, Hi: 511, VelocityAt: -1},
	{Kind: adaptive.Number, At: 19, N: 3, Lo: 5, Hi: 5000, Scalar: true, VelocityAt: 16},
	{Kind: adaptive.Number, At: 22, N: 2, Lo: -3, Hi: 90, VelocityAt: 4, PerTick: schema.MaxPerTick},
	{Kind: adaptive.Integer, At: 24, N: 1, Bits: 32, Signed: true, VelocityAt: -1},
}

// span returns the range of component k of f.
func span(f *adaptive.Field, k int) (lo, hi int64) {
	w := f.Bits
	if w > 32 {
		if w -= 32; k%2 == 0 {
			w = 32
		}
	}
	switch f.Kind {
	case adaptive.Quat:
		if k == 0 {
			return 0, 3
		}
		return -int64(f.Hi), int64(f.Hi)
	case adaptive.Number:
		return int64(f.Lo), int64(f.Hi)
	case adaptive.Integer:
		if f.Signed && (f.Bits <= 32 || k%2 == 1) {
			return -1 << (w - 1), 1<<(w-1) - 1
		}
	case adaptive.Angle, adaptive.Bits, adaptive.Bytes:
	}
	return 0, 1<<w - 1
}

// inRange reports whether a frame is within its fields' ranges.
func inRange(fields []adaptive.Field, r *schema.Frame) bool {
	for i := range fields {
		f := &fields[i]
		if f.Kind == adaptive.Bytes {
			if n := len(r.Bytes[f.Blob]); n < f.MinBytes || n > f.MaxBytes {
				return false
			}
			continue
		}
		for k := range f.N {
			lo, hi := span(f, k)
			v := int64(r.Ints[f.At+k])
			if lo >= 0 && hi > 1<<31-1 {
				v = int64(uint32(v))
			}
			if v < lo || v > hi {
				return false
			}
		}
	}
	return true
}

func newFrame(fields []adaptive.Field) *schema.Frame {
	n, blobs := 0, 0
	for _, f := range fields {
		if f.Kind == adaptive.Bytes {
			blobs++
		} else {
			n = max(n, f.At+f.N)
		}
	}
	return &schema.Frame{Ints: make([]int32, n), Bytes: make([][]byte, blobs)}
}

func newFrames(fields []adaptive.Field) []*schema.Frame {
	frames := make([]*schema.Frame, adaptive.MaxFrames)
	for i := range frames {
		frames[i] = newFrame(fields)
	}
	return frames
}

func equal(a, b *schema.Frame) bool {
	return slices.Equal(a.Ints, b.Ints) && slices.EqualFunc(a.Bytes, b.Bytes, slices.Equal)
}

// randomFrame returns a frame that follows old. Each field is unchanged, a little different or
// random.
func randomFrame(r *rand.Rand, fields []adaptive.Field, old *schema.Frame) *schema.Frame {
	x := newFrame(fields)
	for i := range fields {
		f := &fields[i]
		mode := r.IntN(8)
		if old == nil {
			mode = 7
		}
		if f.Kind == adaptive.Bytes {
			x.Bytes[f.Blob] = randomBytes(r, f, old, mode)
			continue
		}
		for k := range f.N {
			lo, hi := span(f, k)
			v := lo + int64(r.Uint64()%uint64(hi-lo+1))
			if mode < 7 {
				v = int64(old.Ints[f.At+k])
			}
			if mode >= 3 && mode < 7 {
				v = max(lo, min(hi, v+int64(r.NormFloat64()*float64(int64(1)<<r.IntN(8)))))
			}
			x.Ints[f.At+k] = int32(uint32(v))
		}
	}
	return x
}

func randomBytes(r *rand.Rand, f *adaptive.Field, old *schema.Frame, mode int) []byte {
	if mode < 5 {
		b := slices.Clone(old.Bytes[f.Blob])
		if mode >= 3 && len(b) > 0 {
			b[r.IntN(len(b))]++
		}
		return b
	}
	b := make([]byte, f.MinBytes+r.IntN(f.MaxBytes-f.MinBytes+1))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// smoothFrames returns n frames of a vehicle that moves smoothly.
func smoothFrames(n int) []*schema.Frame {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]*schema.Frame, n)
	x := newFrame(vehicleFields).Ints
	x[6] = 3
	for i := range n {
		for k := range 3 {
			x[3+k] += int32(r.NormFloat64() * 40)
			x[k] += x[3+k] / 60
			x[10+k] += int32(r.NormFloat64() * 10)
			x[7+k] = int32(400 + 3*i%400 + k*100)
		}
		x[15], x[16] = int32(r.NormFloat64()*10), int32(r.NormFloat64()*5)
		x[13] = (x[13] - 4*x[15]) & 0xffff
		x[14] = (x[14] + 4*x[16]) & 0xffff
		x[17]++
		if r.IntN(20) == 0 {
			x[18] ^= 1 << r.IntN(6)
		}
		out[i] = &schema.Frame{Ints: slices.Clone(x)}
	}
	return out
}

// frameSize returns the numbers of components and byte strings of a frame.
func frameSize(fields []adaptive.Field) (ints, blobs int) {
	r := newFrame(fields)
	return len(r.Ints), len(r.Bytes)
}

// newKnown returns room for baselines of the last ring frames.
func newKnown(fields []adaptive.Field, ring int) *adaptive.Frames {
	ints, blobs := frameSize(fields)
	return adaptive.NewFrames(ints, blobs, ring+adaptive.LearnReach)
}

// end is one end of a stream.
type end struct {
	state *adaptive.State
	coder adaptive.Coder
	known *adaptive.Frames
}

func newEnd(m *adaptive.Model, fields []adaptive.Field, ring int) *end {
	return &end{state: m.NewState(ring), known: newKnown(fields, ring)}
}

// accept stores a frame and learns the frame that it pushes out of the ring.
func (e *end) accept(seq uint64, r *schema.Frame) {
	if keep := uint64(e.known.Cap() - adaptive.LearnReach); seq >= keep {
		e.state.Learn(seq-keep, e.known)
	}
	e.known.Put(seq, r, adaptive.Shape{Frames: 1})
}

// learn accepts a frame and learns it immediately.
func (e *end) learn(seq uint64, r *schema.Frame) {
	e.accept(seq, r)
	e.state.Learn(seq, e.known)
}

// encode appends the payload of frames, of which the last has the sequence number newest.
func (e *end) encode(dst []byte, frames []*schema.Frame, newest, base uint64, hasBase bool) []byte {
	p := adaptive.Payload{Frames: frames, Newest: newest, Base: base, HasBase: hasBase}
	return e.coder.Encode(dst, &p, e.state, e.known)
}

// decode decodes src into frames and returns the number of frames received.
func (e *end) decode(frames []*schema.Frame, src []byte, newest, base uint64, hasBase bool) (int, error) {
	p := adaptive.Payload{Frames: frames, Newest: newest, Base: base, HasBase: hasBase}
	err := e.coder.Decode(src, &p, e.state, e.known)
	return len(p.Frames), err
}
