package adaptive

// past is what the prediction of one frame reads: its reference and frames
// before that. A missing one repeats its successor and has rate 0.
type past struct {
	base, prev   *Row    // reference and the frame before it, for byte strings
	b, h1, h2    []int32 // reference; the two before it
	h4           []int32 // newest at or before two sequences before h2
	hd, hdd      []int32 // newest at or before one distance before b, and before hd
	d            int64   // sequences from the reference to the frame
	r1, r12, r24 int64   // Q16: d over the time from b to h1, h1 to h2, h2 to h4
	rd, rdd      int64   // the same from b to hd, hd to hdd
	class        int
	grow         int64 // Q8, of the scale within the class
}

// view is the frames known while a payload is coded: those up to the baseline,
// and the ones of the payload before the present one.
type view struct {
	history History
	base    int64 // newest sequence to ask history for; -1 is none
	floor   int64 // sequences up to this are not read
	first   int64 // sequence of rows[0]
	rows    []*Row
}

func (v *view) at(seq int64) *Row {
	if seq > v.base {
		if i := seq - v.first; i >= 0 && i < int64(len(v.rows)) {
			return v.rows[i]
		}
		return nil
	}
	if seq <= v.floor || seq < 0 {
		return nil
	}
	return v.history.At(uint64(seq))
}

// searched is how many sequences are asked for until a frame counts as missing.
const searched = 8

// back finds the newest frame at or before to; from, whose ints are given, is
// its successor.
func (p *past) back(v *view, from int64, ints []int32, to int64) ([]int32, int64, int64) {
	for s := to; s > to-searched; s-- {
		if r := v.at(s); r != nil {
			return r.Ints, s, p.d * recip[min(from-s, MaxRing)]
		}
	}
	return ints, from, 0
}

// fill sets p for frame seq, coded against the known frame b; it is false if
// that is not known.
func (p *past) fill(v *view, seq, b int64) bool {
	p.base = v.at(b)
	if p.base == nil {
		return false
	}
	p.d = seq - b
	p.class = classOf(p.d)
	p.grow = growth[min(p.d, MaxRing)]
	p.b = p.base.Ints
	p.prev = p.base
	if r := v.at(b - 1); r != nil {
		p.prev = r
	}
	var s1, s2, sd int64
	p.h1, s1, p.r1 = p.back(v, b, p.b, b-1)
	p.h2, s2, p.r12 = p.back(v, s1, p.h1, s1-1)
	p.h4, _, p.r24 = p.back(v, s2, p.h2, s2-2)
	if p.d == 1 {
		p.hd, p.rd = p.h1, p.r1
		p.hdd, p.rdd = p.h2, p.r12
		return true
	}
	p.hd, sd, p.rd = p.back(v, b, p.b, b-p.d)
	p.hdd, _, p.rdd = p.back(v, sd, p.hd, sd-p.d)
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
var recip = func() (t [MaxRing + 1]int64) {
	for i := 1; i < len(t); i++ {
		t[i] = (1<<16 + int64(i)/2) / int64(i)
	}
	return t
}()

// growth is about (distance / distance of the class)^1.2, Q8: the exponent
// linearized.
var growth = func() (t [MaxRing + 1]int64) {
	for d := 1; d < len(t); d++ {
		t[d] = 256 * int64(d) / classDistance[classOf(int64(d))]
		t[d] += (t[d] - 256) / 5
	}
	return t
}()

// wrapTo brings x into [-2^(w-1), 2^(w-1)) modulo 2^w; w = 0 leaves it.
func wrapTo(x int64, w uint) int64 {
	if w == 0 {
		return x
	}
	return x << (64 - w) >> (64 - w)
}
