package tune

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/analysis"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/trace"
)

// Bound is the maximum permitted error of a field at the server: the distance of vectors, the
// difference of each scalar, the angle of angles, rotations and directions.
type Bound struct {
	Field string
	Value float64
	Unit  string // one of [Units], or "" for the unit of the field's columns; degrees for rotations and directions
}

// ParseBound parses a bound such as Field=1cm or Field=0.01.
func ParseBound(text string) (Bound, error) {
	name, value, ok := strings.Cut(text, "=")
	end := len(value)
	for end > 0 && !strings.ContainsRune("0123456789.", rune(value[end-1])) {
		end--
	}
	v, err := strconv.ParseFloat(value[:end], 64)
	if !ok || name == "" || err != nil || !(v > 0) || math.IsInf(v, 0) {
		return Bound{}, fmt.Errorf("%q: want Field=0.01, or with a unit Field=1cm", text)
	}
	b := Bound{Field: name, Value: v, Unit: strings.TrimSpace(value[end:])}
	if _, known := unitOf(b.Unit); b.Unit != "" && !known {
		return b, fmt.Errorf("%q: unknown unit %q; there are %s", text, b.Unit, Units())
	}
	return b, nil
}

type unit struct {
	dimension string
	size      float64
}

// units are the units of lengths and angles. With the suffix "/s", or "ps" as in names of columns,
// they are units of rates.
var units = map[string]unit{
	"mm": {"length", .001}, "cm": {"length", .01}, "uu": {"length", .01}, "m": {"length", 1}, "km": {"length", 1000},
	"deg": {"angle", 1}, "rad": {"angle", 180 / math.Pi}, "mrad": {"angle", .18 / math.Pi},
}

// Units returns the names of the units.
func Units() string {
	return strings.Join(slices.Sorted(maps.Keys(units)), ", ") + ", and each of them with /s"
}

func unitOf(name string) (unit, bool) {
	base, rate := strings.CutSuffix(name, "/s")
	if !rate {
		if _, known := units[name]; !known {
			base, rate = strings.CutSuffix(name, "ps")
		}
	}
	u, ok := units[base]
	if rate {
		u.dimension += " a second"
	}
	return u, ok
}

// columnUnit returns the unit that ends the names of a field's columns, such as cm in pos_x_cm.
func columnUnit(f *schema.Field) (u unit, ok bool) {
	for i, column := range trace.Columns(f) {
		at := strings.LastIndexByte(column, '_')
		if at < 0 {
			return u, false
		}
		v, known := unitOf(column[at+1:])
		if !known || i > 0 && v != u {
			return u, false
		}
		u = v
	}
	return u, true
}

// limit returns the bound in the unit of the field: the unit of its columns, or degrees. If columns
// is not "", it is the unit of the columns.
func (b *Bound) limit(f *schema.Field, columns string) (float64, error) {
	own, known := unit{"angle", 1}, true
	switch f.Kind {
	case schema.KindAngle, schema.KindQuat, schema.KindUnitVec:
	case schema.KindVec2, schema.KindVec3, schema.KindScalar:
		own, known = columnUnit(f)
		if columns != "" {
			own, known = unitOf(columns)
		}
	default:
		return 0, fmt.Errorf("--error %s: a %s is not rounded, and has no error", b.Field, f.Kind)
	}
	if b.Unit == "" {
		return b.Value, nil
	}
	if !known {
		return 0, fmt.Errorf("--error %s: the unit of %s is not known: name it with --unit %s=cm, say, or give the error in it and without one",
			b.Field, strings.Join(trace.Columns(f), ", "), b.Field)
	}
	u, _ := unitOf(b.Unit)
	if u.dimension != own.dimension {
		return 0, fmt.Errorf("--error %s: %s is one of %s, but %s has one of %s", b.Field, b.Unit, u.dimension, b.Field, own.dimension)
	}
	return b.Value * u.size / own.size, nil
}

// tighten sets f to the coarsest steps for which the error of all values is within limit.
func tighten(f *schema.Field, limit float64) error {
	switch f.Kind {
	case schema.KindAngle, schema.KindQuat, schema.KindUnitVec:
	default:
		f.Resolution = roundDown(2 * limit / math.Sqrt(float64(dimensions(f))))
		analysis.WholeSteps(f)
		return nil
	}
	least, most := analysis.BitRange(f.Kind)
	for bits := least; bits <= most; bits++ {
		if worst(f.Kind, bits) <= limit {
			f.Bits = bits
			return nil
		}
	}
	return fmt.Errorf("--error %s: %d bits are off by up to %.2g degrees; want that or more", f.Name, most, worst(f.Kind, most))
}

// dimensions returns the number of values of a field that contribute to one error.
func dimensions(f *schema.Field) int {
	switch f.Kind {
	case schema.KindVec2:
		return 2
	case schema.KindVec3:
		return 3
	default:
		return 1
	}
}

// worst returns an upper bound of the error of a field with the given bits, in degrees.
func worst(k schema.Kind, bits int) float64 {
	limit := math.Ldexp(1, bits-1) - 1
	switch k {
	case schema.KindAngle:
		return 180 / math.Ldexp(1, bits)
	case schema.KindQuat:
		// Three elements are off by up to half a step of 1 / (limit * sqrt 2). If all four are
		// equal, the largest element is off by up to three times that. The total is sqrt 12 times
		// half a step, and the angle twice the total.
		return math.Sqrt(6) / limit * 180 / math.Pi
	default:
		// Two coordinates are off by up to half a step of 1 / limit, the third by up to their sum.
		// A point of the octahedron is at least 1 / sqrt 3 from its center.
		return math.Sqrt(18) / 2 / limit * 180 / math.Pi
	}
}

// roundDown rounds x down to two digits.
func roundDown(x float64) float64 {
	scale := math.Pow(10, math.Floor(math.Log10(x))-1)
	for digits := math.Floor(x/scale + 1e-9); ; digits-- {
		v, err := strconv.ParseFloat(strconv.FormatFloat(digits*scale, 'g', 2, 64), 64)
		if err == nil && v <= x*(1+1e-9) {
			return v
		}
	}
}
