package floor

import "math"

// contexts count how often a flag was false and true, by what was known.
type contexts map[uint64]*[2]float64

func (c contexts) add(key uint64, yes bool) {
	p := c[key]
	if p == nil {
		p = new([2]float64)
		c[key] = p
	}
	if yes {
		p[1]++
	} else {
		p[0]++
	}
}

// bits is the entropy of all flags, were their chances known in advance.
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

// flag counts whether component k of f changed, and says whether it did not.
func (s *series) flag(f *field, k, t int, c contexts) (held bool) {
	b := t - s.d
	same := func(j, n, m int) uint64 {
		if s.rows[n][f.at+j] == s.rows[m][f.at+j] {
			return 1
		}
		return 0
	}
	key := uint64(k)<<8 | same(k, b, b-1) | same(k, b, b-s.d)<<1 | same(k, b-1, b-2)<<2
	for j := range k {
		key |= same(j, t, b) << (3 + j%4)
	}
	held = same(k, t, b) == 1
	c.add(key, held)
	return held
}

// bits is the entropy of a field of bits: whether any changes, and then each.
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

// indexes is the entropy of a quat's index, given that of the baseline and how
// close its largest element is to the next.
func (s *series) indexes(f *field) float64 {
	c := contexts{}
	for t := s.first; t < len(s.rows); t++ {
		q := f.quatOf(s.rows[t-s.d])
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

// common is the entropy of the values that component k of f takes, without regard to what it was before.
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
