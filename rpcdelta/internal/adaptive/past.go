package adaptive

// past is what the prediction of one frame reads: its reference and frames
// before that. A missing one repeats its successor and has rate 0.
type refFrames struct {
	refBytes, prevBytes [][]byte // byte strings of the reference and the frame before it
	ref, h1, h2         []int32  // reference; the two before it
	h4                  []int32  // newest at or before two sequences before h2
	hd, hdd             []int32  // newest at or before one distance before b, and before hd
	dist                int64    // sequences from the reference to the frame
	r1, r12, r24        int64    // Q16: d over the time from b to h1, h1 to h2, h2 to h4
	rd, rdd             int64    // the same from b to hd, hd to hdd
	diffs               []byte   // changes by component, and by byte string, and seven more bytes
	class               int
	classSpan           // where it lies between classes
}

// view is the frames known while a payload is coded: those up to the baseline,
// and the ones of the payload before the present one.
type view struct {
	known *Frames
	slot  int   // of base
	base  int64 // newest sequence to look up in known; -1 is none
	floor int64 // sequences up to this are not read
	first int64 // sequence of rows[0]
	rows  []*Row
}

// look opens the view of the frames up to base.
func newView(known *Frames, base, floor int64) view {
	return view{known: known, slot: known.slot(uint64(base)), base: base, floor: max(floor, base-int64(known.Cap()), -1)}
}

// find gives the slot of a frame up to base, or -1.
func (v *view) find(seq int64) int {
	if seq <= v.floor || seq > v.base {
		return -1
	}
	i := v.slot - int(v.base-seq)
	if i < 0 {
		i += len(v.known.seqs)
	}
	if v.known.seqs[i] != uint64(seq)+1 {
		return -1
	}
	return i
}

// ints gives the components of a frame, or nil.
func (v *view) ints(seq int64) []int32 {
	if seq > v.base {
		if r := v.row(seq); r != nil {
			return r.Ints[:v.known.width:v.known.width]
		}
		return nil
	}
	if i := v.find(seq); i >= 0 {
		return v.known.intsOf(i)
	}
	return nil
}

// bytes gives the byte strings of a frame.
func (v *view) bytes(seq int64) (b [][]byte, ok bool) {
	if i := v.find(seq); i >= 0 {
		return v.known.bytesOf(i), true
	}
	if r := v.row(seq); r != nil {
		return r.Bytes, true
	}
	return nil, false
}

// row gives an earlier frame of the payload, or nil.
func (v *view) row(seq int64) *Row {
	if i := seq - v.first; seq > v.base && i >= 0 && i < int64(len(v.rows)) {
		return v.rows[i]
	}
	return nil
}

// searched is how many sequences are asked for until a frame counts as missing.
const searchLimit = 8

// back finds the newest frame at or before to; from, whose ints are given, is
// its successor.
func (p *refFrames) search(v *view, from int64, ints []int32, to int64) ([]int32, int64, int64) {
	if i := v.find(to); i >= 0 { // as nearly always
		return v.known.intsOf(i), to, p.dist * int64(recip[min(from-to, MaxRing)])
	}
	for s := to; s > to-searchLimit; s-- {
		if r := v.ints(s); r != nil {
			return r, s, p.dist * int64(recip[min(from-s, MaxRing)])
		}
	}
	return ints, from, 0
}

// fill sets p for frame seq, coded against the known frame b; it is false if
// that is not known.
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
		if p.prevBytes, ok = v.bytes(b - 1); !ok {
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
	p.diffs = v.known.moved
	return true
}

// classDistance is the distance that each class learns at.
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

// span is where a distance lies: share of the way from class from to the next, by
// its logarithm, Q8, or beyond; grown is that of scales. Predictions lie between those of lo and hi, one class
// where there is nothing between.
type classSpan struct {
	from, lo, hi uint8
	share        int16
}

// between gives the span of each distance.
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

// wrapTo brings x into [-2^(w-1), 2^(w-1)) modulo 2^w, for w below 64; w = 0
// leaves it.
func wrapTo(x int64, w uint) int64 {
	unused := (64 - w) & 63
	return x << unused >> unused
}
