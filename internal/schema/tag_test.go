package schema

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func of[T any]() reflect.Type { return reflect.TypeFor[T]() }

// TestTagErrors verifies that errors name the RPC, the field and the problem.
func TestTagErrors(t *testing.T) {
	for _, c := range []struct {
		typ  reflect.Type
		tag  string
		want []string
	}{
		{of[Vec3](), "", []string{"resolution 0"}},
		{of[float32](), "", []string{"resolution 0"}},
		{of[[]byte](), "", []string{"needs max"}},
		{of[string](), "", []string{"needs max"}},
		{of[map[string]int](), "", []string{"map[string]int is not supported without max=N"}},
		{of[[]int](), "", []string{"[]int is not supported without max=N"}},
		{of[[4]complex64](), "", []string{"[4]complex64 is not supported without max=N"}},
		{of[[65]int](), "", []string{"array of 65, want 1 to 64"}},
		{of[uint16](), `width=17`, []string{"width 17, but uint16 has 16 bits"}},
		{of[Vec3](), `resolution=1,resolution=2`, []string{"resolution is given twice"}},
		{of[*int](), "", []string{"*int is not supported without max=N"}},
		{of[Base](), "", []string{"Base is not supported without max=N"}},
		{of[complex64](), "", []string{"complex64 is not supported"}},
		{of[chan int](), "", []string{"chan int is not supported"}},
		{of[chan int](), `max=9`, []string{"chan int"}},
		{of[struct{ F func() }](), `max=9`, []string{"func()"}},
		{of[[0]float64](), "", []string{"array of 0"}},
		{of[[65]float64](), "", []string{"array of 65"}},
		{of[[0]byte](), "", []string{"size 0"}},
		{of[Vec3](), `resolution`, []string{`option "resolution"`, "name=value"}},
		{of[Vec3](), `resolution=`, []string{`option "resolution="`}},
		{of[Vec3](), `resolution=0.1,`, []string{`option ""`}},
		{of[Vec3](), `resolution=fine`, []string{`"resolution=fine"`, "want a number"}},
		{of[Vec3](), `resoluton=0.1`, []string{"unknown option", "resolution"}},
		{of[Vec3](), `resolution=-1`, []string{"resolution -1"}},
		{of[Vec3](), `resolution=NaN`, []string{"resolution NaN"}},
		{of[Vec3](), `resolution=1e-320`, []string{"too small"}},
		{of[Vec3](), `resolution=1,bits=3`, []string{"bits means nothing for kind vec3"}},
		{of[Vec3](), `resolution=1,min=3,max=2`, []string{"min 3 is above max 2"}},
		{of[Vec3](), `resolution=1,min=9e6`, []string{"min 9e+06 is above max"}},
		{of[Vec3](), `resolution=1,max=-9e6`, []string{"max -9e+06"}},
		{of[Vec3](), `resolution=1,max=3e9`, []string{"max 3e+09", "2^31 steps"}},
		{of[Vec3](), `resolution=1,min=-2147483648`, []string{"min -2.147483648e+09", "not below 2^31 steps"}},
		{of[Vec3](), `resolution=1,min=NaN`, []string{"min NaN"}},
		{of[Quat](), `bits=21`, []string{"bits 21, want 3 to 20"}},
		{of[Angle](), `bits=25`, []string{"bits 25, want 2 to 24"}},
		{of[uint8](), `width=65`, []string{"width 65, but uint8 has 8 bits"}},
		{of[uint8](), `width=x`, []string{`"width=x"`}},
		{of[[]byte](), `max=1.5`, []string{"max 1.5"}},
		{of[[]byte](), `max=0`, []string{"max 0"}},
		{of[[]byte](), `max=1000000`, []string{"max 1e+06"}},
		{of[Vec3](), `resolution=1,velocity=Nowhere`, []string{`velocity "Nowhere" is no field`}},
		{of[Vec3](), `resolution=1,velocity_scale=2`, []string{"velocity_scale means nothing"}},
		{of[float64](), `kind=polar`, []string{`unknown kind "polar"`}},
		{of[Vec3](), `kind=quat`, []string{"3 numbers, but a quat has 4"}},
		{of[float64](), `kind=uint,width=8`, []string{"a float cannot be a uint"}},
		{of[int](), `kind=vec3,resolution=1`, []string{"vec3"}},
		{of[int](), `kind=quat`, []string{"quat"}},
		{of[int](), `kind=bytes,max=8`, []string{"bytes"}},
		{of[bool](), `kind=scalar,resolution=1`, []string{"scalar"}},
		{of[bool](), `kind=int,width=1`, []string{"int"}},
		{of[[]byte](), `kind=scalar,resolution=1`, []string{"scalar"}},
		{of[[4]byte](), `kind=bits,width=8`, []string{"bits"}},
		{of[string](), `kind=uint,width=8`, []string{"uint"}},
	} {
		wantCompileError(t, tagged(c.typ, c.tag), append(c.want, `"Odd"`)...)
	}
	wantCompileError(t, of[int](), "int is not a struct")
	wantCompileError(t, of[struct{}](), "no fields to send")
	wantCompileError(t, of[struct {
		Odd int `uplink:"-"`
	}](), "no fields to send")
	wantCompileError(t, of[struct{ odd int }](), `"odd"`, "not exported")
	wantCompileError(t, of[struct{ *Base }](), `"Base"`, "*schema.Base is not supported")
	wantCompileError(t, of[struct {
		Base
		Health int8
	}](), `"Health"`, "used twice")
}

// tagged returns a struct with the field Odd of type t and the given tag.
func tagged(t reflect.Type, tag string) reflect.Type {
	field := reflect.StructField{Name: "Odd", Type: t, Tag: reflect.StructTag(fmt.Sprintf("uplink:%q", tag))}
	return reflect.StructOf([]reflect.StructField{field})
}

func wantCompileError(t *testing.T, typ reflect.Type, want ...string) {
	t.Helper()
	_, _, err := compile(typ, "Test", 60)
	for _, part := range append(want, "Test") {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v: %v, want %q", typ, err, part)
		}
	}
}

// TestQuantizeErrors verifies that a value that its field cannot hold is a RangeError.
func TestQuantizeErrors(t *testing.T) {
	type call struct {
		P     Vec3      `uplink:"resolution=0.1"`
		Small uint16    `uplink:"width=4"`
		Neg   int       `uplink:"kind=uint,width=8"`
		Text  string    `uplink:"max=3"`
		Deep  []int     `uplink:"max=4"`
		One   uint8     `uplink:"kind=bool"`
		Speed float32   `uplink:"resolution=1,max=10"`
		Wide  [2]uint64 `uplink:"width=40"`
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
		{"Wide", call{Wide: [2]uint64{0, 1 << 40}}},
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
