package schema

import (
	"math"
	"reflect"
	"slices"
	"testing"
)

type (
	meters  float32
	team    uint8
	ticks   int64
	flag    bool
	label   string
	token   [4]byte
	blob    []byte
	heading = Angle
)

type Base struct {
	Health int16
	Alive  bool
}

type hidden struct{ Ammo uint32 }

// outer embeds structs at two levels, neither at offset 0.
type outer struct {
	Pad uint8
	middle
}

type middle struct {
	Wide float64 `uplink:"resolution=0.5"`
	inner
}

type inner struct{ Left, Right int16 }

// everything has a field of each type that Compile supports without msgpack.
type everything struct {
	Base
	hidden
	outer
	P2   Vec2    `uplink:"resolution=0.25"`
	P3   Vec3    `uplink:"resolution=0.25,min=-10,max=20"`
	N    UnitVec `uplink:"bits=10"`
	Q    Quat
	R    Rotator
	A    Angle   `uplink:"bits=8"`
	H    heading // an alias is the type itself
	F32  float32 `uplink:"resolution=0.5"`
	F64  float64 `uplink:"resolution=0.5, velocity=F32, velocity_scale=2"`
	Turn float64 `uplink:"kind=angle,bits=12"`
	M    meters  `uplink:"resolution=0.5"`

	Axes  [3]float64 `uplink:"kind=vec3,resolution=0.5"`
	Dirs  [2]float32 `uplink:"kind=angle"`
	Raw   [5]meters  `uplink:"resolution=2"`
	Slots [3]int16
	Wides [2]uint64 `uplink:"width=40"`
	Flags [2]bool
	Steps [2]int8 `uplink:"kind=scalar,resolution=1"`
	I     int
	I8    int8
	I16   int16 `uplink:"width=12"`
	I32   int32
	I64   int64
	U     uint
	U8    uint8 `uplink:"kind=bits,width=5"`
	U16   uint16
	U32   uint32
	U64   uint64
	Level int32 `uplink:"kind=scalar,resolution=1"`
	Team  team
	Ticks ticks `uplink:"width=40"`
	Flag  flag
	One   uint8 `uplink:"kind=bool"`
	Token token
	Four  [4]byte
	Bytes []byte   `uplink:"max=8"`
	Blob  blob     `uplink:"max=8"`
	Text  string   `uplink:"max=8"`
	Label label    `uplink:"max=8"`
	Home  chan int `uplink:"-"`
	_     uint32
}

func full() everything {
	return everything{
		Base: Base{Health: -7, Alive: true}, hidden: hidden{Ammo: math.MaxUint32},
		outer: outer{Pad: 1, middle: middle{Wide: -7.5, inner: inner{Left: 3, Right: -4}}},
		P2:    Vec2{1.25, -2}, P3: Vec3{-10, 20, 0.25}, N: UnitVec{0, -1, 0}, Q: Quat{0, 1, 0, 0},
		R: Rotator{-45, 90, -180}, A: 45, H: -90, F32: 1.5, F64: -2.5, Turn: 90, M: 3.5,
		Axes: [3]float64{1, 2, 3.5}, Dirs: [2]float32{90, -90}, Raw: [5]meters{2, 4, -6, 8, 10},
		Slots: [3]int16{-1, math.MaxInt16, math.MinInt16}, Wides: [2]uint64{1<<40 - 1, 7}, Flags: [2]bool{false, true}, Steps: [2]int8{-128, 127},
		I: math.MinInt, I8: -128, I16: -2048, I32: math.MinInt32, I64: math.MinInt64,
		U: math.MaxUint, U8: 31, U16: math.MaxUint16, U32: math.MaxUint32, U64: math.MaxUint64,
		Level: -1000, Team: 255, Ticks: -1 << 39, Flag: true, One: 1,
		Token: token{1, 2, 3, 4}, Four: [4]byte{5, 6, 7, 8},
		Bytes: []byte("bytes"), Blob: blob("\x00\xff"), Text: "text", Label: "label",
	}
}

func TestTypeRoundTrip(t *testing.T) {
	c := mustCompile[everything](t)
	f := c.Schema().NewFrame()
	want := full()
	must(t, c.Quantize(f, &want))
	must(t, c.Schema().Check(f))
	home, buf := make(chan int), []byte("longer than it was")
	got := everything{Home: home, Bytes: buf, Text: "old"}
	must(t, c.Restore(&got, f))
	want.Home = home // stays as it is
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if &got.Bytes[0] != &buf[0] {
		t.Error("a slice with room was replaced")
	}
}

func TestFieldsOfType(t *testing.T) {
	type small struct {
		Base
		P     Vec3 `uplink:"resolution=0.1,min=-1,max=2,velocity=V,velocity_scale=0.5"`
		V     Vec3 `uplink:"resolution=0.1"`
		Q     Quat
		N     UnitVec
		R     Rotator
		Dirs  [2]float32 `uplink:"kind=angle,bits=8"`
		U     uint16     `uplink:"width=9"`
		Four  [4]byte
		Text  string         `uplink:"max=8"`
		State map[string]int `uplink:"max=20"`
		Slots [3]int16
		Wide  [2]uint64 `uplink:"width=40"`
		Flags [2]bool
		Steps [2]int8 `uplink:"kind=scalar,resolution=1"`
	}
	var got []string
	for _, f := range mustCompile[small](t).Schema().Fields() {
		got = append(got, f.String())
	}
	want := []string{
		"Health int width=16",
		"Alive bool",
		"P vec3 resolution=0.1 steps=-10..20 velocity=V velocity_scale=0.5",
		"V vec3 resolution=0.1",
		"Q quat bits=12",
		"N unitvec bits=12",
		"R angle count=3 bits=16",
		"Dirs angle count=2 bits=8",
		"U uint width=9",
		"Four fixed size=4",
		"Text bytes max=8",
		"State bytes max=20",
		"Slots int count=3 width=16",
		"Wide uint count=2 width=40",
		"Flags bool count=2",
		"Steps scalar count=2 resolution=1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
