package versions

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/schematest"
)

// nextVersion returns a schema with some fields of s as they are, some with other options, some
// under another name, and new ones, in another order.
func nextVersion(pick schematest.Picker, s *schema.Schema) *schema.Schema {
	fields := []schema.Field{pick.Field("New", schema.KindVec3), pick.Field("Turn", schema.KindQuat), pick.Field("Text", schema.KindFixed)}
	for _, f := range s.Fields() {
		switch pick(3) {
		case 0:
			f.Name += "Renamed"
		case 1:
			other := pick.Field(f.Name, f.Kind)
			other.Count = f.Count
			if f.Kind == schema.KindFixed {
				other.Size = f.Size
			}
			if other.Width < f.Width {
				other.Width = f.Width
			}
			if f.Kind == schema.KindBytes && *other.Max < *f.Max {
				other.Max = f.Max
			}
			f = other
		}
		fields = slices.Insert(fields, int(pick(int64(len(fields)))), f)
	}
	next, err := schema.New(s.RPC(), s.RateHz(), fields)
	if err != nil {
		panic(err)
	}
	return next
}

// TestConversion converts random frames between two versions of random schemas: fields that are
// alike keep their integers, others their values within a step, and all frames are valid.
func TestConversion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := schematest.FromRapid(t)
		from := pick.Schema()
		to := nextVersion(pick, from)
		c, err := New(from, to)
		if err != nil {
			t.Fatal(err)
		}
		src, dst, again := from.NewFrame(), to.NewFrame(), to.NewFrame()
		pick.Frame(from, src, from.NewFrame())
		pick.Frame(to, dst, to.NewFrame())
		c.Convert(dst, src)
		if err := to.Check(dst); err != nil {
			t.Fatal(err)
		}
		if c.Convert(again, src); !again.Equal(dst) {
			t.Fatal("the frame before had an influence")
		}
		for i, f := range to.Fields() {
			k := slices.IndexFunc(from.Fields(), func(o schema.Field) bool { return o.Name == f.Name })
			if missing := slices.Contains(c.Missing(), f.Name); missing != (k < 0) {
				t.Fatalf("field %q: missing %v", f.Name, missing)
			}
			if k >= 0 {
				compare(t, from, k, src, to, i, dst)
			}
		}
		for _, f := range from.Fields() {
			shared := slices.ContainsFunc(to.Fields(), func(o schema.Field) bool { return o.Name == f.Name })
			if shared == slices.Contains(c.Skipped(), f.Name) {
				t.Fatalf("field %q: skipped %v", f.Name, !shared)
			}
		}
	})
}

func compare(t *rapid.T, from *schema.Schema, k int, src *schema.Frame, to *schema.Schema, i int, dst *schema.Frame) {
	a, b := &from.Layouts()[k], &to.Layouts()[i]
	if a.Class == schema.ClassBytes {
		if string(from.BytesOf(src, k)) != string(to.BytesOf(dst, i)) {
			t.Fatalf("field %q: %q became %q", a.Field.Name, from.BytesOf(src, k), to.BytesOf(dst, i))
		}
		return
	}
	if a.Field.String() == b.Field.String() {
		if x, y := src.Ints[a.At:][:a.N], dst.Ints[b.At:][:b.N]; !slices.Equal(x, y) {
			t.Fatalf("field %q: %d became %d", a.Field.Name, x, y)
		}
	}
	x, y := from.RestoreField(nil, src, k), to.RestoreField(nil, dst, i)
	for n := range x {
		want, tolerance := x[n], 0.0
		switch {
		case a.Class == schema.ClassInteger:
		case a.Class == schema.ClassNumber && a.Field.Kind != schema.KindUnitVec:
			want = min(max(want, float64(b.Lo)/b.Scale), float64(b.Hi)/b.Scale)
			tolerance = b.Field.Resolution * 0.501
		case a.Class == schema.ClassAngle:
			if d := math.Abs(math.Remainder(want-y[n], 360)); d > 0.501/b.Scale {
				t.Fatalf("field %q: %v became %v", a.Field.Name, want, y[n])
			}
			continue
		default:
			continue // TestQuantizeField of package schema tests how far directions and rotations are off
		}
		if math.Abs(want-y[n]) > tolerance {
			t.Fatalf("field %q: %v became %v, want up to %v off", a.Field.Name, want, y[n], tolerance)
		}
	}
}

func TestIncompatible(t *testing.T) {
	for _, test := range []struct{ from, to, want string }{
		{"At vec3 resolution=0.01", "At vec2 resolution=0.01", `field "At"`},
		{"Health uint width=16", "Health uint width=8", "16 bits do not fit into 8"},
		{"Health uint width=16", "Health scalar resolution=1", "other kind"},
		{"Angles angle count=2 bits=16", "Angles angle count=3 bits=16", "other number"},
		{"Name bytes max=9", "Name bytes max=8", "9 bytes do not"},
		{"Name fixed size=8", "Name fixed size=9", "8 bytes do not"},
	} {
		from, err := Parse("Move", []string{test.from})
		if err != nil {
			t.Fatal(err)
		}
		to, err := Parse("Move", []string{test.to})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := New(from, to); !errors.As(err, new(*FieldError)) || !strings.Contains(fmt.Sprint(err), test.want) {
			t.Errorf("%s to %s: %v, want %q", test.from, test.to, err, test.want)
		}
	}
}
