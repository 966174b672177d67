package session

import "slices"

// Distribution is the distribution of the numbers added to it. Mean and maximum are exact;
// quantiles are estimated from a sample.
type Distribution struct {
	Count   int
	Sum     float64
	Max     float64
	samples []float64
	every   int
}

// maxSamples is the maximum number of samples that Add keeps.
const maxSamples = 1 << 18

// Add adds a number.
func (d *Distribution) Add(v float64) {
	d.every = max(1, d.every)
	if d.Count%d.every == 0 {
		if len(d.samples) >= maxSamples {
			d.samples = half(d.samples)
			d.every *= 2
		}
		d.samples = append(d.samples, v)
	}
	d.Count++
	d.Sum += v
	d.Max = max(d.Max, v)
}

// Merge adds all numbers of another distribution.
func (d *Distribution) Merge(o *Distribution) {
	samples := o.samples
	for every := max(1, o.every); every < d.every; every *= 2 {
		samples = half(samples)
	}
	for d.every = max(1, d.every); d.every < o.every; d.every *= 2 {
		d.samples = half(d.samples)
	}
	d.samples = append(d.samples, samples...)
	d.Count, d.Sum, d.Max = d.Count+o.Count, d.Sum+o.Sum, max(d.Max, o.Max)
}

// half returns every other number.
func half(v []float64) (out []float64) {
	for i := 0; i < len(v); i += 2 {
		out = append(out, v[i])
	}
	return out
}

// Mean returns the mean, or 0 if there are no numbers.
func (d *Distribution) Mean() float64 { return d.Sum / float64(max(1, d.Count)) }

// Quantile returns the number below which a fraction of the numbers lie, or 0 if there are no
// numbers.
func (d *Distribution) Quantile(fraction float64) float64 {
	if len(d.samples) == 0 {
		return 0
	}
	sorted := slices.Clone(d.samples)
	slices.Sort(sorted)
	return sorted[min(len(sorted)-1, int(fraction*float64(len(sorted))))]
}
