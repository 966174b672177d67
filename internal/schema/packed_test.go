package schema

import (
	"bytes"
	"fmt"
	"net/url"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
)

type part struct {
	Name  string
	Price float64
	Tags  []string
	Next  *part
}

// packed has fields of types that are encoded as msgpack.
type packed struct {
	Counts map[string]int            `uplink:"max=200"`
	Slots  map[int]uint8             `uplink:"max=200"`
	Nested map[string]map[int]string `uplink:"max=200"`
	Part   part                      `uplink:"max=200"`
	Opt    *part                     `uplink:"max=200"`
	List   []int16                   `uplink:"max=200"`
	Trio   [3]int32                  `uplink:"max=200"`
	When   time.Time                 `uplink:"max=200"`
	Any    any                       `uplink:"max=200"`
	Wild   pointerCoded              `uplink:"max=200"`
}

// pointerCoded has its methods on the pointer receiver.
type pointerCoded struct{ secret string }

func (p *pointerCoded) MarshalBinary() ([]byte, error) { return []byte(p.secret), nil }

func (p *pointerCoded) UnmarshalBinary(b []byte) error {
	p.secret = string(b)
	return nil
}

// TestPackedRoundTrip verifies that values are restored, and that equal values yield equal bytes.
func TestPackedRoundTrip(t *testing.T) {
	c := mustCompile[packed](t)
	f, again := c.Schema().NewFrame(), c.Schema().NewFrame()
	for _, want := range []packed{
		{},
		{
			Counts: map[string]int{"a": 1, "b": -2}, Slots: map[int]uint8{-1: 1, 300: 2},
			Nested: map[string]map[int]string{"x": {1: "one", 2: "two"}, "y": {}},
			Part:   part{Name: "bolt", Price: 0.1, Tags: []string{"m", "8"}, Next: &part{Name: "nut"}},
			Opt:    &part{}, List: []int16{1, -2, 3}, Trio: [3]int32{-1, 0, 1},
			When: time.Unix(1, 2).UTC(), Any: "text", Wild: pointerCoded{"word"},
		},
	} {
		must(t, c.Quantize(f, &want))
		for range 30 { // the order of maps changes
			if must(t, c.Quantize(again, &want)); !again.Equal(f) {
				t.Fatalf("got %x, want %x", again.Bytes, f.Bytes)
			}
		}
		got := packed{Counts: map[string]int{"old": 1}, Opt: &part{Name: "old"}, List: []int16{9, 9, 9, 9}, Any: 1}
		must(t, c.Restore(&got, f))
		same := got.When.Equal(want.When)
		got.When = want.When
		if !same || !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
}

// bomb has a field of every type whose decoder could allocate too much.
type bomb struct {
	Any   any                    `uplink:"max=1000"`
	List  []string               `uplink:"max=1000"`
	Map   map[string][]int       `uplink:"max=1000"`
	Part  part                   `uplink:"max=1000"`
	Whens []time.Time            `uplink:"max=1000"`
	Bytes map[string]any         `uplink:"max=1000"`
	Deep  [][][][]map[int]string `uplink:"max=1000"`
}

// TestHostilePacked verifies that msgpack whose lengths exceed the data is an error, and that the
// decoder does not allocate by the declared length.
func TestHostilePacked(t *testing.T) {
	c := mustCompile[bomb](t)
	s := c.Schema()
	for name, data := range map[string][]byte{
		"nothing":              {},
		"never used":           {0xc1},
		"huge array":           {0xdd, 0xff, 0xff, 0xff, 0xff},
		"huge map":             {0xdf, 0x7f, 0xff, 0xff, 0xff},
		"huge string":          {0xdb, 0xff, 0xff, 0xff, 0xff, 'a'},
		"huge bytes":           {0xc6, 0x7f, 0xff, 0xff, 0xff, 'a'},
		"huge ext":             {0xc9, 0x7f, 0xff, 0xff, 0xff, 1},
		"array of few":         {0xdc, 0x00, 0x03, 1, 2},
		"array of many":        append([]byte{0xdd, 0x00, 0x00, 0xff, 0xff}, make([]byte, 900)...),
		"map with half a pair": {0x81, 0xa1, 'a'},
		"two values":           {0x01, 0x02},
		"deep arrays":          bytes.Repeat([]byte{0x91}, 900),
		"deep maps":            bytes.Repeat([]byte{0x81, 0x01}, 400),
		"deep, closed":         append(bytes.Repeat([]byte{0x91}, 900), 0xc0),
		"cut integer":          {0xd3, 1, 2, 3},
		"map in an extension":  {0xd6, 0x30, 0xde, 0x78, 0x30, 0x30},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i, field := range s.Fields() {
			f := s.NewFrame()
			for k := range f.Bytes {
				f.Bytes[k] = []byte{0xc0} // nil
			}
			f.Bytes[i] = data
			if err := c.Restore(new(bomb), f); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", field.Name)) {
				t.Errorf("%s in %s: %v", name, field.Name, err)
			}
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
			t.Errorf("%s: %d bytes allocated", name, n)
		}
	}
}

// sealed encodes itself, so the types of its fields do not matter.
type sealed struct{ Done chan bool }

func (s *sealed) MarshalText() ([]byte, error) { return []byte("sealed"), nil }
func (s *sealed) UnmarshalText(_ []byte) error { return nil }

// TestUnpackable verifies that Compile returns an error for a type that msgpack cannot encode, at
// any depth.
func TestUnpackable(t *testing.T) {
	type deep struct {
		Next   *deep
		Fields map[string][]struct{ Done chan<- bool }
	}
	for typ, want := range map[reflect.Type]string{
		of[[]func()]():            "type []func(): func() has no form",
		of[map[string]chan int](): "type map[string]chan int: chan int has no form",
		of[[]complex128]():        "complex128 has no form",
		of[*deep]():               "type *schema.deep: Fields: Done: chan<- bool has no form",
		of[[2]deep]():             "type [2]schema.deep: Fields: Done: chan<- bool has no form in m",
	} {
		wantCompileError(t, tagged(typ, "max=9"), `field "Odd": `, want)
	}
	type fine struct {
		Sealed  []sealed         `uplink:"max=90"`
		Times   []time.Time      `uplink:"max=90"`
		Anys    map[int]any      `uplink:"max=90"`
		Tree    *part            `uplink:"max=90"`
		URLs    map[int]*url.URL `uplink:"max=90"`
		Skipped []struct {
			Done chan bool `msgpack:"-"`
			done chan bool
		} `uplink:"max=90"`
	}
	c := mustCompile[fine](t)
	if err := c.Quantize(c.Schema().NewFrame(), &fine{Sealed: []sealed{{}}, Anys: map[int]any{1: 2}}); err != nil {
		t.Error(err)
	}
}
