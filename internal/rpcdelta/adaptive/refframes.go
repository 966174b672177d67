package adaptive

import (
	"encoding/binary"

	"github.com/uplink-rpc/uplink/internal/schema"
)

// refFrames holds the frames that the prediction of one frame reads. A missing frame repeats its
// successor and has rate 0. Rates are in Q16: dist divided by the distance of the two frames.
type refFrames struct {
	ref       []int32  // components of the reference
	h1, h2    []int32  // the two newest frames before ref
	h4        []int32  // newest frame at least two sequence numbers before h2
	hd, hdd   []int32  // newest frame at least dist before ref; newest frame at least dist before hd
	refBytes  [][]byte // byte strings of the reference
	prevBytes [][]byte // byte strings of the frame before the reference

	dist         int64 // distance of the frame to its reference, in sequence numbers
	r1, r12, r24 int64 // rates from h1 to ref, h2 to h1, h4 to h2
	rd, rdd      int64 // rates from hd to ref, hdd to hd
	class        int   // class of dist
	classSpan          // interpolation between the two classes around dist

	diffs []byte // flagInputs by component and byte string, then seven bytes of padding
}

// searchLimit is the number of sequence numbers that search tries before it treats a frame as
// missing.
const searchLimit = 16

// search returns the newest frame at or before sequence number to, its sequence number, and the
// rate of change from it to frame from, whose components are ints.
func (p *refFrames) search(v *view, from int64, ints []int32, to int64) ([]int32, int64, int64) {
	if v.gap.includes(to) {
		to = v.gap.from
	}
	if a := v.find(to); a != nil { // the frame at to itself is stored
		return v.known.intsOf(a), to, p.dist * int64(recip[min(from-to, MaxRing)])
	}
	for s := to; s > to-searchLimit; s-- {
		if r := v.ints(s); r != nil {
			return r, s, p.dist * int64(recip[min(from-s, MaxRing)])
		}
	}
	return ints, from, 0
}

// load prepares p for frame seq with reference b. It reports whether b is known.
func (p *refFrames) load(v *view, seq, b int64) bool {
	p.ref = v.ints(b)
	if p.ref == nil {
		return false
	}
	p.dist = seq - b
	p.class = classOf(p.dist)
	p.classSpan = spans[min(p.dist, MaxRing)]
	p.refBytes = nil
	if v.known.blobs > 0 {
		p.refBytes, _ = v.bytes(b)
		var ok bool
		if p.prevBytes, ok = v.bytes(b - 1); !ok || v.gap.includes(b-1) {
			p.prevBytes = p.refBytes
		}
	}
	var s1, s2, sd int64
	p.h1, s1, p.r1 = p.search(v, b, p.ref, b-1)
	p.h2, s2, p.r12 = p.search(v, s1, p.h1, s1-1)
	p.h4, _, p.r24 = p.search(v, s2, p.h2, s2-2)
	if p.dist == 1 {
		p.hd, p.rd = p.h1, p.r1
		p.hdd, p.rdd = p.h2, p.r12
	} else {
		p.hd, sd, p.rd = p.search(v, b, p.ref, b-p.dist)
		p.hdd, _, p.rdd = p.search(v, sd, p.hd, sd-p.dist)
	}
	p.diffs = v.known.diffs
	return true
}

// classDistance is the distance, in frames, that each class learns.
var classDistance = [classes]int64{1, 4, 8}

func classOf(d int64) int {
	switch {
	case d <= 1:
		return 0
	case d <= 5:
		return 1
	}
	return 2
}

// recip is 1/i in Q16.
var recip = func() (t [MaxRing + 1]int32) {
	for i := 1; i < len(t); i++ {
		t[i] = int32((1<<16 + i/2) / i)
	}
	return t
}()

// classSpan is the position of a distance between the classes from and from+1. The share of the
// second class is in Q8 and logarithmic in the distance; beyond the last class it exceeds 256.
// Predictions interpolate between the classes lo and hi. If the share is 0 or at least 256, both
// are the same class.
type classSpan struct {
	from, lo, hi uint8
	share        int16
}

// spans is the classSpan of each distance.
var spans = func() (t [MaxRing + 1]classSpan) {
	for d := 1; d < len(t); d++ {
		x := &t[d]
		if d > int(classDistance[1]) {
			x.from = 1
		}
		from, to := log2(classDistance[x.from]-1), log2(classDistance[x.from+1]-1)
		x.share = int16((log2(int64(d)-1) - from) * 256 / (to - from))
		x.lo, x.hi = x.from, x.from+1
		if x.share == 0 {
			x.hi = x.from
		} else if x.share >= 256 {
			x.lo = x.hi
		}
	}
	return t
}()

// wrapTo reduces x modulo 2^w to [-2^(w-1), 2^(w-1)), for w below 64. If w is 0, it returns x.
func wrapTo(x int64, w uint) int64 {
	unused := (64 - w) & 63
	return x << unused >> unused
}

// compare sets diffs for frame or, while frame is not decoded yet, for the reference.
func (p *refFrames) compare(frame *schema.Frame) {
	b := p.ref
	h1, hd := p.h1[:len(b)], p.hd[:len(b)]
	ints, moved := frame.Ints[:len(b)], p.diffs[:len(b)]
	for i, v := range b {
		moved[i] = byte(differs(v, h1[i]) | differs(v, hd[i])<<1 | differs(v, ints[i])<<4)
	}
	if len(p.refBytes) > 0 {
		p.compareBytes(frame)
	}
}

func (p *refFrames) compareBytes(frame *schema.Frame) {
	for i, base := range p.refBytes {
		p.diffs[len(p.ref)+i] = byte(bytesInputs(base, p.prevBytes[i], frame.Bytes[i]))
	}
}

// groupInputs returns the inputs of a group's flag: the union of its components' inputs.
func (p *refFrames) groupInputs(g *group) flagInputs {
	if g.n > 8 {
		return unionInputs(p.diffs[g.diffsAt:][:g.n])
	}
	x := binary.LittleEndian.Uint64(p.diffs[g.diffsAt:]) << (g.diffShift & 63)
	x |= x >> 32
	x |= x >> 16
	return flagInputs(x>>8 | x)
}
