package analysis

import (
	"fmt"
	"math"
	"slices"

	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/trace"
)

// Bill contains the bits per frame of a field.
type Bill struct {
	Field  string
	Flags  float64 // change flags, indexes and bit sets
	Values float64
}

func minFrames(distance int) int { return 4 * (distance + margin) }

// Floor estimates the minimum bits of the fields of a trace, except byte strings, in coding order,
// with each frame encoded against the frame that is distance frames older. It is not a codec: it
// fits models to the whole trace, including later frames, and does not count them. The estimate is
// the cost of a codec of the same kind, a weighted sum of features with noise of slowly varying
// width, that knows these models in advance. See docs/design/codec.md.
//
// progress, if not nil, is called with the completed share. Too few frames are an error.
func Floor(t *trace.Trace, distance int, progress func(done float64)) ([]Bill, error) {
	if least := minFrames(distance); len(t.Frames) < least {
		const few = "%s: %d frames are too few for distance %d: want at least %d"
		return nil, fmt.Errorf(few, t.Name, len(t.Frames), distance, least)
	}
	s := newSeries(t, distance)
	bills := make([]Bill, 0, len(s.fields))
	for i, f := range s.fields {
		if progress != nil {
			progress(float64(i) / float64(len(s.fields)))
		}
		bills = append(bills, s.price(f))
	}
	return bills, nil
}

func (s *series) price(f *field) Bill {
	b, n := Bill{Field: f.Name}, float64(len(s.rows)-s.first)
	if f.Kind == schema.KindBits || f.Kind == schema.KindBool {
		b.Flags = s.bits(f) / n
		return b
	}
	c := contexts{}
	var earlier [][]float64 // surprise of each earlier component, by frame; NaN: none
	for k := range f.components() {
		var z noise
		var xs [][]float64
		var ys []float64
		var at []int
		for t := s.first; t < len(s.rows); t++ {
			if f.flagged() && s.flag(f, k, t, c) {
				continue
			}
			x, y := s.features(f, k, t, nil)
			xs, ys, at = append(xs, x), append(ys, y), append(at, t)
		}
		surprise := slices.Repeat([]float64{math.NaN()}, len(s.rows))
		if len(xs) > 0 {
			e := hindsight(xs, ys)
			s.judge(&z, e, ys, at, earlier)
			sum := 0.0
			for i, v := range z.fit() {
				sum += v
				surprise[at[i]] = log2(e[i]) - z.level(i)
			}
			if f.Kind == schema.KindUint || f.Kind == schema.KindInt {
				sum = min(sum, s.common(f, k, at))
			}
			b.Values += sum / n
		}
		earlier = append(earlier, surprise)
		s.seen = append(s.seen, surprise)
	}
	b.Flags = c.bits() / n
	if f.Kind == schema.KindQuat {
		b.Flags += s.indexes(f) / n
	}
	return b
}

// judge sets the clues for the width of the noise in frame t: mean magnitudes over past frames up
// to the baseline, and over future frames from the first one whose steps do not overlap frame t's.
func (s *series) judge(z *noise, e, y []float64, at []int, earlier [][]float64) {
	mags := slices.Repeat([]float64{math.NaN()}, len(s.rows))
	for i, t := range at {
		mags[t] = e[i]
	}
	before := func(back, t int) float64 { // value of the component back places earlier in coding order
		if k := len(earlier) - back; k >= 0 && !math.IsNaN(earlier[k][t]) {
			return earlier[k][t]
		}
		return 0
	}
	z.e = e
	for i, t := range at {
		c := [clues]float64{1, 4: before(1, t), 5: s.surprise(t), 7: before(2, t)}
		for j, w := range []int{2, 8, 40} {
			c[1+j] = log2(s.nearby(mags, t, w))
		}
		c[6] = log2(y[i]-e[i]) - c[2]
		z.clues = append(z.clues, c)
	}
}

// surprise returns the mean surprise of the components coded earlier in frame t.
func (s *series) surprise(t int) float64 {
	sum, n := 0.0, 0.0
	for _, v := range s.seen {
		if !math.IsNaN(v[t]) {
			sum += v[t]
			n++
		}
	}
	return sum / max(n, 1)
}

// nearby returns the mean magnitude over the w frames up to t-d and the w frames from t+d on.
func (s *series) nearby(mags []float64, t, w int) float64 {
	sum, n := .3, .3
	add := func(i int) {
		if i >= 0 && i < len(mags) && !math.IsNaN(mags[i]) {
			sum += math.Abs(mags[i])
			n++
		}
	}
	for i := range w {
		add(t - s.d - i)
		add(t + s.d + i)
	}
	return sum / n
}

// contexts counts false and true flags, by context.
type contexts map[uint64]*[2]float64

func (c contexts) add(key uint64, yes bool) {
	p := c[key]
	if p == nil {
		p = new([2]float64)
		c[key] = p
	}
	p[index(yes)]++
}

func (c contexts) bits() float64 {
	sum := 0.0
	for _, p := range c {
		for _, n := range p {
			if n > 0 {
				sum -= n * math.Log2(n/(p[0]+p[1]))
			}
		}
	}
	return sum
}

// flag counts whether component k of f changed in its context, and reports whether it did not.
func (s *series) flag(f *field, k, t int, c contexts) (held bool) {
	b := t - s.d
	same := func(j, n, m int) uint64 { return uint64(index(s.rows[n][f.at+j] == s.rows[m][f.at+j])) }
	key := uint64(k)<<8 | same(k, b, b-1) | same(k, b, b-s.d)<<1 | same(k, b-1, b-2)<<2
	for j := range k {
		key |= same(j, t, b) << (3 + j%4)
	}
	held = same(k, t, b) == 1
	c.add(key, held)
	return held
}

func (s *series) bits(f *field) float64 {
	c := contexts{}
	for t := s.first; t < len(s.rows); t++ {
		b := t - s.d
		changed, lately := false, uint64(0)
		for j := range f.n {
			changed = changed || s.rows[t][f.at+j] != s.rows[b][f.at+j]
			if s.rows[b][f.at+j] != s.rows[b-1][f.at+j] {
				lately = 1
			}
			if s.rows[b][f.at+j] != s.rows[b-s.d][f.at+j] {
				lately |= 2
			}
		}
		c.add(lately, changed)
		if !changed {
			continue
		}
		for j := range f.n {
			now, was, before := int64(s.rows[t][f.at+j]), int64(s.rows[b][f.at+j]), int64(s.rows[b-1][f.at+j])
			for bit := range 32 {
				key := uint64(j)<<16 | uint64(bit)<<8 | uint64(was>>bit&1)<<1 | uint64((was^before)>>bit&1) | 4
				c.add(key, (now^was)>>bit&1 == 1)
			}
		}
	}
	return c.bits()
}

// indexes returns the entropy of a quat's index, given the baseline's index and the difference of
// its two largest elements.
func (s *series) indexes(f *field) float64 {
	c := contexts{}
	for t := s.first; t < len(s.rows); t++ {
		q := f.orientation(s.rows[t-s.d])
		first, second := 0.0, 0.0
		for _, v := range q {
			v = math.Abs(v)
			first, second = max(first, v), max(second, min(first, v))
		}
		near := uint64(max(0, min(9, -math.Log2(first-second+1e-9))))
		c.add(near, s.rows[t][f.at] != s.rows[t-s.d][f.at])
	}
	return c.bits()
}

// common returns the entropy of the values of component k of f, independent of earlier values.
func (s *series) common(f *field, k int, at []int) float64 {
	counts := map[float64]float64{}
	for _, t := range at {
		counts[s.rows[t][f.at+k]]++
	}
	sum := 0.0
	for _, n := range counts {
		sum -= n * math.Log2(n/float64(len(at)))
	}
	return sum
}
