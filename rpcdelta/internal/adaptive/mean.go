package adaptive

import (
	"cmp"
	"maps"
	"slices"
)

// paramMean is the mean of parameters over time or over recordings. Frequent values have no mean;
// the most frequent ones are kept.
type paramMean struct {
	n        int64
	sum      []int64
	counts   map[int32]int64 // frequent values: sum of the counts of each
	frequent bool            // the parameters are frequent values
}

// newMeans returns empty means for all parameters of the model.
func (m *Model) newMeans() groupMeans {
	out := make(groupMeans, len(m.groups))
	for i := range out {
		all := m.params(i)
		out[i] = make([]paramMean, len(all))
		for k, x := range all {
			out[i][k].frequent = x.kind == paramValues
		}
	}
	return out
}

// groupMeans are the means of a model's parameters, by group.
type groupMeans [][]paramMean

// add adds the parameters of a state.
func (ms groupMeans) add(m *Model, l *modelState) {
	var s paramVisitor
	for i := range ms {
		for k, x := range m.params(i) {
			s.values = s.values[:0]
			s.param(l, m, x)
			ms[i][k].add(s.values)
		}
	}
}

func (a *paramMean) add(v []int32) {
	a.n++
	if a.frequent {
		if a.counts == nil {
			a.counts = map[int32]int64{}
		}
		for i := 0; i < len(v); i += 2 {
			if v[i+1] > 0 {
				a.counts[v[i]] += int64(v[i+1])
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

// merge adds the mean b with the weight of one sample.
func (a *paramMean) merge(b *paramMean) {
	if v := b.values(); v != nil {
		a.frequent = b.frequent
		a.add(v)
	}
}

// values returns the means, rounded, or nil if there are no samples.
func (a *paramMean) values() []int32 {
	if a.n == 0 {
		return nil
	}
	if a.frequent {
		return a.mostFrequent()
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

// mostFrequent returns the most frequent values, each followed by its mean count.
func (a *paramMean) mostFrequent() []int32 {
	all := slices.SortedFunc(maps.Keys(a.counts), func(x, y int32) int {
		return cmp.Or(cmp.Compare(a.counts[y], a.counts[x]), cmp.Compare(x, y))
	})
	out := make([]int32, 0, 2*listSize)
	for _, v := range all[:min(len(all), listSize)] {
		out = append(out, v, int32(max(1, min(200, (a.counts[v]+a.n/2)/a.n))))
	}
	return append(out, make([]int32, 2*listSize-len(out))...)
}
