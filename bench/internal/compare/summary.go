package compare

import (
	"math"

	"github.com/uplink-rpc/uplink/bench/internal/peer"
)

// Mean has the geometric means of a scheme over all traces.
type Mean struct {
	Name  string     `json:"name"`
	Class peer.Class `json:"class"`
	// Bits are the bits per delivered frame at each loss, Delivered the arithmetic means of the
	// delivered ratio.
	Bits      []float64 `json:"bits_per_delivered_frame"`
	Delivered []float64 `json:"delivered_ratio"`
	EncodeNs  float64   `json:"encode_ns,omitempty"`
	DecodeNs  float64   `json:"decode_ns,omitempty"`
}

// Summary is the result of all traces.
type Summary struct {
	Losses []float64 `json:"losses"`
	Means  []Mean    `json:"geometric_means"`
	// Ratios compare adaptive, without and with redundancy, with the general-purpose peer that has
	// the fewest bits for the trace and loss.
	Ratios []Ratio `json:"ratios_to_best_general_peer"`
}

// Ratio has quotients of bits per delivered frame: geometric means over the traces at each loss,
// and those of each trace without loss.
type Ratio struct {
	Name  string    `json:"name"`
	Loss  []float64 `json:"at_each_loss"`
	Trace []float64 `json:"at_each_trace_without_loss"`
}

// Summarize returns the summary of the results of at least one trace. All have the same losses.
func Summarize(results []*Result) *Summary {
	first := results[0]
	s := &Summary{}
	for _, p := range first.Schemes[0].Points {
		s.Losses = append(s.Losses, p.Loss)
	}
	for i := range first.Schemes {
		s.Means = append(s.Means, s.mean(results, i))
	}
	for _, name := range []string{Adaptive, Redundant} {
		s.Ratios = append(s.Ratios, s.ratio(results, name))
	}
	return s
}

func (s *Summary) mean(results []*Result, i int) Mean {
	over := func(f func(*Scheme) float64) float64 {
		return geometric(results, func(r *Result) float64 { return f(&r.Schemes[i]) })
	}
	m := Mean{Name: results[0].Schemes[i].Name, Class: results[0].Schemes[i].Class}
	for k := range s.Losses {
		delivered := 0.0
		for _, r := range results {
			delivered += r.Schemes[i].Points[k].Delivered / float64(len(results))
		}
		m.Delivered = append(m.Delivered, delivered)
		m.Bits = append(m.Bits, over(func(c *Scheme) float64 { return c.Points[k].Bits }))
	}
	m.EncodeNs = over(func(c *Scheme) float64 { return c.EncodeNs })
	m.DecodeNs = over(func(c *Scheme) float64 { return c.DecodeNs })
	return m
}

func (s *Summary) ratio(results []*Result, name string) Ratio {
	ratio := Ratio{Name: name}
	for k := range s.Losses {
		ratio.Loss = append(ratio.Loss, geometric(results, func(r *Result) float64 { return r.ratio(name, k) }))
	}
	for _, r := range results {
		ratio.Trace = append(ratio.Trace, r.ratio(name, 0))
	}
	return ratio
}

// ratio returns the bits of a scheme divided by those of the best general-purpose peer, at loss k.
func (r *Result) ratio(name string, k int) float64 {
	return r.at(name).Points[k].Bits / r.Best(k).Points[k].Bits
}

// Best returns the general-purpose peer with the fewest bits at loss k.
func (r *Result) Best(k int) *Scheme {
	var best *Scheme
	for i := range r.Schemes {
		if s := &r.Schemes[i]; s.Class == peer.General && (best == nil || s.Points[k].Bits < best.Points[k].Bits) {
			best = s
		}
	}
	return best
}

// Wrong returns the number of frames that differ from the sent ones, in all runs.
func (r *Result) Wrong() (n int) {
	for _, s := range r.Schemes {
		for _, p := range s.Points {
			n += p.Mismatches
		}
	}
	return n
}

func geometric(results []*Result, f func(*Result) float64) float64 {
	sum := 0.0
	for _, r := range results {
		sum += math.Log(f(r))
	}
	return math.Exp(sum / float64(len(results)))
}
