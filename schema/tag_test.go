package schema

import (
	"errors"
	"strings"
	"testing"
)

func compileError[T any]() error {
	_, err := Compile[T]("Test", 60)
	return err
}

// TestCompileErrors verifies that errors name the RPC, the field and the problem.
func TestCompileErrors(t *testing.T) {
	for _, c := range []struct {
		err  error
		want []string
	}{
		{compileError[int](), []string{"int is not a struct"}},
		{compileError[struct{}](), []string{"no fields to send"}},
		{compileError[struct {
			Odd int `uplink:"-"`
		}](), []string{"no fields to send"}},

		{compileError[struct{ odd int }](), []string{`"odd"`, "not exported"}},
		{compileError[struct{ Odd Vec3 }](), []string{`"Odd"`, "resolution 0"}},
		{compileError[struct{ Odd float32 }](), []string{`"Odd"`, "resolution 0"}},
		{compileError[struct{ Odd []byte }](), []string{`"Odd"`, "needs max"}},
		{compileError[struct{ Odd string }](), []string{`"Odd"`, "needs max"}},
		{compileError[struct{ Odd map[string]int }](), []string{`"Odd"`, "map[string]int is not supported without max=N"}},
		{compileError[struct{ Odd []int }](), []string{`"Odd"`, "[]int is not supported without max=N"}},
		{compileError[struct{ Odd [4]complex64 }](), []string{`"Odd"`, "[4]complex64 is not supported without max=N"}},
		{compileError[struct{ Odd [65]int }](), []string{`"Odd"`, "array of 65, want 1 to 64"}},
		{compileError[struct {
			Odd uint16 `uplink:"width=17"`
		}](), []string{`"Odd"`, "width 17, but uint16 has 16 bits"}},
		{compileError[struct {
			Odd Vec3 `uplink:"resolution=1,resolution=2"`
		}](), []string{`"Odd"`, "resolution is given twice"}},
		{compileError[struct{ Odd *int }](), []string{`"Odd"`, "*int is not supported without max=N"}},
		{compileError[struct{ Odd Base }](), []string{`"Odd"`, "Base is not supported without max=N"}},
		{compileError[struct{ *Base }](), []string{`"Base"`, "*schema.Base is not supported"}},
		{compileError[struct{ Odd complex64 }](), []string{`"Odd"`, "complex64 is not supported"}},
		{compileError[struct{ Odd chan int }](), []string{`"Odd"`, "chan int is not supported"}},
		{compileError[struct {
			Odd chan int `uplink:"max=9"`
		}](), []string{`"Odd"`, "chan int"}},
		{compileError[struct {
			Odd struct{ F func() } `uplink:"max=9"`
		}](), []string{`"Odd"`, "func()"}},
		{compileError[struct{ Odd [0]float64 }](), []string{`"Odd"`, "array of 0"}},
		{compileError[struct{ Odd [65]float64 }](), []string{`"Odd"`, "array of 65"}},
		{compileError[struct{ Odd [0]byte }](), []string{`"Odd"`, "size 0"}},

		{compileError[struct {
			Odd Vec3 `uplink:"resolution"`
		}](), []string{`"Odd"`, `option "resolution"`, "name=value"}},
		{compileError[struct {
			Odd Vec3 `uplink:"resolution="`
		}](), []string{`"Odd"`, `option "resolution="`}},
		{compileError[struct {
			Odd Vec3 `uplink:"resolution=0.1,"`
		}](), []string{`"Odd"`, `option ""`}},
		{compileError[struct {
			Odd Vec3 `uplink:"resolution=fine"`
		}](), []string{`"Odd"`, `"resolution=fine"`, "invalid syntax"}},
		{compileError[struct {
			Odd Vec3 `uplink:"resoluton=0.1"`
		}](), []string{`"Odd"`, "unknown option", "resolution"}},
		{compileError[struct {
			Odd Vec3 `uplink:"resolution=-1"`
		}](), []string{`"Odd"`, "resolution -1"}},
		{compileError[struct {
			Odd Vec3 `uplink:"resolution=NaN"`
		}](), []string{`"Odd"`, "resolution NaN"}},
		{compileError[struct {
			Odd Vec3 `uplink:"resolution=1e-320"`
		}](), []string{`"Odd"`, "too small"}},
		{compileError[struct {
			Odd Vec3 `uplink:"resolution=1,bits=3"`
		}](), []string{`"Odd"`, "bits means nothing for a vec3"}},
		{compileError[struct {
			Odd Vec3 `uplink:"resolution=1,min=3,max=2"`
		}](), []string{`"Odd"`, "min 3 is above max 2"}},
		{compileError[struct {
			Odd Vec3 `uplink:"resolution=1,min=9e6"`
		}](), []string{`"Odd"`, "min 9e+06 is above max"}},
		{compileError[struct {
			Odd Vec3 `uplink:"resolution=1,max=-9e6"`
		}](), []string{`"Odd"`, "max -9e+06"}},
		{compileError[struct {
			Odd Vec3 `uplink:"resolution=1,max=3e9"`
		}](), []string{`"Odd"`, "max 3e+09", "2^31 steps"}},
		{compileError[struct {
			Odd Vec3 `uplink:"resolution=1,min=-2147483648"`
		}](), []string{`"Odd"`, "min -2.147483648e+09", "not below 2^31 steps"}},
		{compileError[struct {
			Odd Vec3 `uplink:"resolution=1,min=NaN"`
		}](), []string{`"Odd"`, "min NaN"}},
		{compileError[struct {
			Odd Quat `uplink:"bits=21"`
		}](), []string{`"Odd"`, "bits 21, want 3 to 20"}},
		{compileError[struct {
			Odd Angle `uplink:"bits=25"`
		}](), []string{`"Odd"`, "bits 25, want 2 to 24"}},
		{compileError[struct {
			Odd uint8 `uplink:"width=65"`
		}](), []string{`"Odd"`, "width 65, but uint8 has 8 bits"}},
		{compileError[struct {
			Odd uint8 `uplink:"width=x"`
		}](), []string{`"Odd"`, `"width=x"`}},
		{compileError[struct {
			Odd []byte `uplink:"max=1.5"`
		}](), []string{`"Odd"`, "max 1.5"}},
		{compileError[struct {
			Odd []byte `uplink:"max=0"`
		}](), []string{`"Odd"`, "max 0"}},
		{compileError[struct {
			Odd []byte `uplink:"max=1000000"`
		}](), []string{`"Odd"`, "max 1e+06"}},
		{compileError[struct {
			Odd Vec3 `uplink:"resolution=1,velocity=Nowhere"`
		}](), []string{`"Odd"`, `velocity "Nowhere" is no field`}},
		{compileError[struct {
			Odd Vec3 `uplink:"resolution=1,velocity_scale=2"`
		}](), []string{`"Odd"`, "velocity_scale means nothing"}},

		{compileError[struct {
			Base
			Health int8
		}](), []string{`"Health"`, "used twice"}},

		{compileError[struct {
			Odd float64 `uplink:"kind=polar"`
		}](), []string{`"Odd"`, `unknown kind "polar"`}},
		{compileError[struct {
			Odd Vec3 `uplink:"kind=quat"`
		}](), []string{`"Odd"`, "3 numbers, but a quat has 4"}},
		{compileError[struct {
			Odd float64 `uplink:"kind=uint,width=8"`
		}](), []string{`"Odd"`, "a float cannot be a uint"}},
		{compileError[struct {
			Odd int `uplink:"kind=vec3,resolution=1"`
		}](), []string{`"Odd"`, "vec3"}},
		{compileError[struct {
			Odd int `uplink:"kind=quat"`
		}](), []string{`"Odd"`, "quat"}},
		{compileError[struct {
			Odd int `uplink:"kind=bytes,max=8"`
		}](), []string{`"Odd"`, "bytes"}},
		{compileError[struct {
			Odd bool `uplink:"kind=scalar,resolution=1"`
		}](), []string{`"Odd"`, "scalar"}},
		{compileError[struct {
			Odd bool `uplink:"kind=int,width=1"`
		}](), []string{`"Odd"`, "int"}},
		{compileError[struct {
			Odd []byte `uplink:"kind=scalar,resolution=1"`
		}](), []string{`"Odd"`, "scalar"}},
		{compileError[struct {
			Odd [4]byte `uplink:"kind=bits,width=8"`
		}](), []string{`"Odd"`, "bits"}},
		{compileError[struct {
			Odd string `uplink:"kind=uint,width=8"`
		}](), []string{`"Odd"`, "uint"}},
	} {
		if c.err == nil {
			t.Errorf("no error that has %q", c.want)
			continue
		}
		for _, part := range append(c.want, "Test") {
			if !strings.Contains(c.err.Error(), part) {
				t.Errorf("%q does not say %s", c.err, part)
			}
		}
	}
}

// TestQuantizeErrors verifies that a value that its field cannot hold is a RangeError.
func TestQuantizeErrors(t *testing.T) {
	type call struct {
		P     Vec3    `uplink:"resolution=0.1"`
		Small uint16  `uplink:"width=4"`
		Neg   int     `uplink:"kind=uint,width=8"`
		Text  string  `uplink:"max=3"`
		Deep  []int   `uplink:"max=4"`
		One   uint8   `uplink:"kind=bool"`
		Speed float32 `uplink:"resolution=1,max=10"`
	}
	c := mustCompile[call](t)
	f := c.Schema().NewFrame()
	for _, bad := range []struct {
		field string
		v     call
	}{
		{"P", call{P: Vec3{Y: nan}}},
		{"P", call{P: Vec3{Z: 1e6}}},
		{"Small", call{Small: 16}},
		{"Neg", call{Neg: -1}},
		{"Text", call{Text: "four"}},
		{"Deep", call{Deep: []int{1, 2, 3, 4, 5}}},
		{"One", call{One: 2}},
		{"Speed", call{Speed: 10.6}},
	} {
		var r *RangeError
		if err := c.Quantize(f, &bad.v); !errors.As(err, &r) || r.Field != bad.field || r.RPC != "Test" {
			t.Errorf("%+v: %v", bad.v, err)
		}
	}
	if err := c.Quantize(f, &call{P: Vec3{1, 2, 3}}); err != nil {
		t.Errorf("a good value after bad ones: %v", err)
	}
}
