package session

import "slices"

// Distribution is of numbers that were added: mean and largest exactly, quantiles of a sample.
type Distribution struct {
	Count int
	Sum   float64
	Max   float64
	kept  []float64
	every int
}

// sampled bounds what is kept.
const sampled = 1 << 18

// Add adds a number.
func (d *Distribution) Add(v float64) {
	d.every = max(1, d.every)
	if d.Count%d.every == 0 {
		if len(d.kept) >= sampled { // half of them will do
			d.kept = half(d.kept)
			d.every *= 2
		}
		d.kept = append(d.kept, v)
	}
	d.Count++
	d.Sum += v
	d.Max = max(d.Max, v)
}

// Merge adds all numbers of another.
func (d *Distribution) Merge(o *Distribution) {
	kept := o.kept
	for every := max(1, o.every); every < d.every; every *= 2 {
		kept = half(kept)
	}
	for d.every = max(1, d.every); d.every < o.every; d.every *= 2 {
		d.kept = half(d.kept)
	}
	d.kept = append(d.kept, kept...)
	d.Count, d.Sum, d.Max = d.Count+o.Count, d.Sum+o.Sum, max(d.Max, o.Max)
}

// half gives every other number.
func half(v []float64) (out []float64) {
	for i := 0; i < len(v); i += 2 {
		out = append(out, v[i])
	}
	return out
}

// Mean of all.
func (d *Distribution) Mean() float64 { return d.Sum / float64(max(1, d.Count)) }

// Quantile gives the number below which a share of them lie.
func (d *Distribution) Quantile(share float64) float64 {
	if len(d.kept) == 0 {
		return 0
	}
	sorted := slices.Clone(d.kept)
	slices.Sort(sorted)
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}
