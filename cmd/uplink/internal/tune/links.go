package tune

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/analysis"
	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// Link is a field with another field that seems to be its rate of change.
type Link struct {
	Field, Velocity int // indexes of fields
	// Scale is the change per second for one unit of velocity; Near is a round factor close to it.
	Scale, Near float64
	// Fit is the share of the field's changes that the velocity explains, measured in the second
	// half of the recordings.
	Fit float64
}

// leastFit is the minimum Fit of a link that is tried.
const leastFit = .3

// links finds possible links, the best first. It correlates the differences of each field with each
// other field over the first half of the recordings, and tests the result on the second half.
func links(fields []schema.Field, recordings []*analysis.Recording) (out []Link) {
	for i := range fields {
		for j := range fields {
			if i == j || fields[i].Velocity != "" || !linkable(&fields[i], &fields[j]) || circular(fields, i, j) {
				continue
			}
			l := Link{Field: i, Velocity: j}
			early, late := l.samples(fields, recordings)
			l.Scale, l.Near = nice(early.slope())
			if l.Scale == 0 || math.IsNaN(l.Scale) || math.IsInf(l.Scale, 0) {
				continue
			}
			if l.Fit = late.explained(l.Scale); l.Fit >= leastFit {
				out = append(out, l)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Link) int { return cmp.Compare(b.Fit, a.Fit) })
	return out
}

// linkable reports whether the kinds of f and v permit v as velocity of f.
func linkable(f, v *schema.Field) bool {
	want := f.Values()
	switch f.Kind {
	case schema.KindQuat:
		want = 3
	case schema.KindVec2, schema.KindVec3, schema.KindScalar:
	default:
		return false
	}
	return (v.Kind == schema.KindVec2 || v.Kind == schema.KindVec3 || v.Kind == schema.KindScalar) && v.Values() == want
}

// circular reports whether the chain of velocities from field j reaches field i.
func circular(fields []schema.Field, i, j int) bool {
	for range fields {
		if j == i {
			return true
		}
		next := slices.IndexFunc(fields, func(f schema.Field) bool { return f.Name == fields[j].Velocity })
		if next < 0 {
			return false
		}
		j = next
	}
	return true
}

// samples are pairs of a field's change per second and the mean velocity during the change.
type samples struct{ change, rate []float64 }

// samples returns the samples of the first and the second half of each recording.
func (l *Link) samples(fields []schema.Field, recordings []*analysis.Recording) (early, late samples) {
	for _, r := range recordings {
		hz := r.Schema.RateHz()
		for n := 1; n < len(r.Frames); n++ {
			to := &early
			if n > len(r.Frames)/2 {
				to = &late
			}
			now, was := r.Values(n, l.Field), r.Values(n-1, l.Field)
			v, w := r.Values(n, l.Velocity), r.Values(n-1, l.Velocity)
			if fields[l.Field].Kind == schema.KindQuat {
				turn := quat.BetweenFloat(unit4(was), unit4(now))
				now, was = turn[:], make([]float64, 3)
			}
			for k := range v {
				to.change, to.rate = append(to.change, (now[k]-was[k])*hz), append(to.rate, (v[k]+w[k])/2)
			}
		}
	}
	early.trim()
	late.trim()
	return early, late
}

func unit4(v []float64) (q quat.Float) {
	n := math.Sqrt(v[0]*v[0] + v[1]*v[1] + v[2]*v[2] + v[3]*v[3])
	for i := range q {
		q[i] = v[i] / n
	}
	return q
}

// trim removes the 1 % of samples with the largest changes, which are jumps.
func (s *samples) trim() {
	if len(s.change) < 100 {
		return
	}
	order := slices.Clone(s.change)
	for i, v := range order {
		order[i] = math.Abs(v)
	}
	slices.Sort(order)
	most := order[len(order)-len(order)/100-1]
	n := 0
	for i, v := range s.change {
		if math.Abs(v) <= most {
			s.change[n], s.rate[n] = v, s.rate[i]
			n++
		}
	}
	s.change, s.rate = s.change[:n], s.rate[:n]
}

func (s *samples) slope() float64 {
	xy, xx := 0.0, 0.0
	for i, x := range s.rate {
		xy += x * s.change[i]
		xx += x * x
	}
	return xy / xx
}

// explained returns the share of the sum of squared changes that the velocity removes.
func (s *samples) explained(scale float64) float64 {
	left, all := 0.0, 0.0
	for i, y := range s.change {
		e := y - scale*s.rate[i]
		left += e * e
		all += y * y
	}
	if all == 0 {
		return 0
	}
	return 1 - left/all
}

var usual = []float64{1, 10, 100, 1000, .1, .01, .001, math.Pi / 180, 180 / math.Pi}

// nice returns x rounded to three digits, and a round factor near x, if there is one. x may differ
// from it by more than the noise if the time between rows does not match the declared rate.
func nice(x float64) (rounded, near float64) {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 3, 64), 64)
	if err != nil {
		return 0, 0
	}
	for _, v := range usual {
		for _, sign := range []float64{1, -1} {
			if math.Abs(x-sign*v) < .25*v {
				return rounded, sign * v
			}
		}
	}
	return rounded, rounded
}
