package adaptive

import (
	"encoding/json"
	"math"
	"testing"
)

// field is a field of a schema, with what the codec derives from it.
type field struct {
	Name, Kind           string
	Count, Bits, Width   int64
	Resolution           float64
	Min, Max             *float64
	Size                 int64
	Velocity             string
	at, n, lo, hi, blob  int64
	factor               int64
	derivative           *field
	family               string
	components           []*component
	widths               []int64 // of the components of bits and bool
	index                int     // in the model
	minBytes, maxBytes   int64
	scalars              []int64
	velocityAt           int64
	counter, bitset, str bool
}

// component is a predicted component.
type component struct {
	f      *field
	at, k  int64
	w      int64
	signed bool
	lo, hi int64
	index  int // in the model
}

// model is the groups in coding order.
type model struct {
	t           *tables
	groups      []*field
	components  []*component
	ints, blobs int64
}

func newModel(t *testing.T, tab *tables, description json.RawMessage, factors []int64) *model {
	t.Helper()
	var s struct{ Fields []*field }
	if err := json.Unmarshal(description, &s); err != nil {
		t.Fatal(err)
	}
	m := &model{t: tab}
	names := map[string]*field{}
	var scalars []int64
	for _, f := range s.Fields {
		names[f.Name] = f
		m.layout(f)
		for k := range f.n {
			if f.Kind == "scalar" {
				scalars = append(scalars, f.at+k)
			}
		}
	}
	for _, f := range s.Fields {
		if f.Velocity != "" {
			if f.factor, factors = factors[0], factors[1:]; f.factor != 0 {
				f.derivative = names[f.Velocity]
			}
		}
	}
	for rank := range 8 {
		for _, f := range s.Fields {
			if rankOf(f, s.Fields) == rank {
				m.add(f)
			}
		}
	}
	for _, g := range m.groups {
		m.compile(g, scalars)
	}
	return m
}

func (m *model) layout(f *field) {
	f.Count = max(f.Count, 1)
	steps := func(v *float64, otherwise int64) int64 {
		if v == nil {
			return otherwise
		}
		return int64(math.Floor(float64(*v*(1/f.Resolution)) + 0.5))
	}
	f.at, f.n = m.ints, f.Count
	switch f.Kind {
	case "vec2":
		f.n = 2
	case "vec3":
		f.n = 3
	case "quat":
		f.n = 4
	case "unitvec":
		f.n = 2
	case "bool":
		f.Width = 1
	case "fixed":
		f.n, f.minBytes, f.maxBytes, f.str = 0, f.Size, f.Size, true
	case "bytes":
		f.n, f.maxBytes, f.str = 0, int64(*f.Max), true
	}
	switch f.Kind {
	case "vec2", "vec3", "scalar":
		f.lo, f.hi = steps(f.Min, -(1<<23-1)), steps(f.Max, 1<<23-1)
	case "quat", "unitvec":
		if f.Bits == 0 {
			f.Bits = 12
		}
		f.hi = 1<<(f.Bits-1) - 1
		f.lo = -f.hi
	case "angle":
		if f.Bits == 0 {
			f.Bits = 16
		}
	}
	if f.Width > 32 {
		f.n *= 2
	}
	f.counter, f.bitset = f.Kind == "uint" || f.Kind == "int", f.Kind == "bits" || f.Kind == "bool"
	m.ints += f.n
	if f.str {
		f.blob = m.blobs
		m.blobs++
	}
}

func rankOf(f *field, all []*field) int {
	switch {
	case f.counter || f.bitset:
		return 0
	case f.Kind == "scalar":
		return 1
	case f.Kind == "angle":
		return 4
	case f.Kind == "quat":
		return 6
	case f.str:
		return 7
	}
	rank := 5
	for _, g := range all {
		if g.derivative == f && g.Kind == "quat" {
			return 2
		} else if g.derivative == f {
			rank = 3
		}
	}
	return rank
}

func (m *model) add(f *field) {
	for _, g := range m.groups {
		if g == f {
			return
		}
	}
	if f.derivative != nil {
		m.add(f.derivative)
	}
	f.index = len(m.groups)
	m.groups = append(m.groups, f)
}

// part returns the width of component k of values of w bits.
func part(w, k int64) int64 {
	switch {
	case w <= 32:
		return w
	case k%2 == 0:
		return 32
	}
	return w - 32
}

func (m *model) compile(g *field, scalars []int64) {
	switch {
	case g.str:
		return
	case g.bitset:
		for k := range g.n {
			g.widths = append(g.widths, part(g.Width, k))
		}
		return
	case g.Kind == "quat" && g.derivative != nil:
		g.family = "turned"
	case g.Kind == "quat":
		g.family = "extrapolated"
	case g.Kind == "angle" && len(scalars) > 0:
		g.family = "angled"
		g.scalars = scalars[:min(2, len(scalars))]
	case g.derivative != nil:
		g.family = "derived"
	default:
		g.family = "plain"
	}
	if g.derivative != nil {
		g.velocityAt = g.derivative.at
	}
	for k := range g.n {
		c := &component{f: g, at: g.at + k, k: k, lo: g.lo, hi: g.hi, index: len(m.components)}
		switch {
		case g.Kind == "quat" && k == 0:
			continue
		case g.Kind == "quat":
			c.k--
		case g.Kind == "angle":
			c.w = g.Bits
		case g.counter:
			c.w = part(g.Width, k)
			c.signed = g.Kind == "int" && (g.Width <= 32 || k%2 == 1)
		}
		m.components = append(m.components, c)
		g.components = append(g.components, c)
	}
}

// fit returns x within the range of the component; numbers of 32 bits are signed.
func (c *component) fit(x int64) int64 {
	switch {
	case c.w == 0:
		return clamp(x, c.lo, c.hi)
	case c.signed:
		return wrap(x, c.w)
	}
	return wrap(x&(1<<c.w-1), 32)
}

// number returns the component as an integer.
func (c *component) number(v int64) int64 {
	if c.w > 0 && !c.signed {
		return v & (1<<32 - 1)
	}
	return v
}
