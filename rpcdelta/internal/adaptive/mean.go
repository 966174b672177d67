package adaptive

import (
	"cmp"
	"maps"
	"slices"
)

// mean is that of numbers of a piece, over time or over recordings. Frequent
// values have no mean: of them the most frequent stay.
type mean struct {
	n     int64
	sum   []int64
	seen  map[int32]int64 // frequent values, with what their counts add up to
	named bool            // they are frequent values
}

// newMeans gives one for each piece of each group.
func (m *Model) newMeans() meansOf {
	out := make(meansOf, len(m.groups))
	for i := range out {
		all := m.piecesOf(i)
		out[i] = make([]mean, len(all))
		for k, x := range all {
			out[i][k].named = x.piece == pieceValues
		}
	}
	return out
}

// meansOf are the means of a model's pieces, by group.
type meansOf [][]mean

// sample adds a state.
func (ms meansOf) sample(m *Model, l *live) {
	var s slots
	for i := range ms {
		for k, x := range m.piecesOf(i) {
			s.values = s.values[:0]
			s.visit(l, m, x)
			ms[i][k].add(s.values)
		}
	}
}

func (a *mean) add(v []int32) {
	a.n++
	if a.named {
		if a.seen == nil {
			a.seen = map[int32]int64{}
		}
		for i := 0; i < len(v); i += 2 {
			if v[i+1] > 0 {
				a.seen[v[i]] += int64(v[i+1])
			}
		}
		return
	}
	if a.sum == nil {
		a.sum = make([]int64, len(v))
	}
	for i := range min(len(v), len(a.sum)) {
		a.sum[i] += int64(v[i])
	}
}

// merge adds the mean of another time, which counts as much as any other.
func (a *mean) merge(b *mean) {
	if v := b.values(); v != nil {
		a.named = b.named
		a.add(v)
	}
}

// values are the means, rounded; nil if there are none.
func (a *mean) values() []int32 {
	if a.n == 0 {
		return nil
	}
	if a.named {
		return a.frequent()
	}
	out := make([]int32, len(a.sum))
	for i, s := range a.sum {
		q := (s + a.n/2) / a.n
		if s < 0 {
			q = (s - a.n/2) / a.n
		}
		out[i] = int32(q)
	}
	return out
}

// frequent are the most frequent values, each with its mean count.
func (a *mean) frequent() []int32 {
	all := slices.SortedFunc(maps.Keys(a.seen), func(x, y int32) int {
		return cmp.Or(cmp.Compare(a.seen[y], a.seen[x]), cmp.Compare(x, y))
	})
	out := make([]int32, 0, 2*listSize)
	for _, v := range all[:min(len(all), listSize)] {
		out = append(out, v, int32(max(1, min(200, (a.seen[v]+a.n/2)/a.n))))
	}
	return append(out, make([]int32, 2*listSize-len(out))...)
}
