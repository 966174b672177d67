package schema

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
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

func TestPackedRoundTrip(t *testing.T) {
	c := mustCompile[packed](t)
	f := c.Schema().NewFrame()
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
		got := packed{Counts: map[string]int{"old": 1}, Opt: &part{Name: "old"}, List: []int16{9, 9, 9, 9}, Any: 1}
		must(t, c.Restore(&got, f))
		if !got.When.Equal(want.When) {
			t.Errorf("%v comes back as %v", want.When, got.When)
		}
		got.When, want.When = time.Time{}, time.Time{}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
}

// TestPackedCanonical verifies that maps with equal entries yield equal bytes, independent of the
// order of insertion.
func TestPackedCanonical(t *testing.T) {
	type call struct {
		Flat   map[int]int               `uplink:"max=2000"`
		Nested map[string]map[string]int `uplink:"max=2000"`
		Inside []map[int]bool            `uplink:"max=2000"`
	}
	c := mustCompile[call](t)
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.Permutation([]int{-40, -1, 0, 1, 2, 127, 128, 300, 70_000}).Draw(t, "order")
		v := call{Flat: map[int]int{}, Nested: map[string]map[string]int{}, Inside: []map[int]bool{{}}}
		for _, k := range keys {
			v.Flat[k] = k
			inner := map[string]int{}
			for _, j := range keys {
				inner[fmt.Sprint(j)] = j
			}
			v.Nested[fmt.Sprint(k)] = inner
			v.Inside[0][k] = true
		}
		ordered := call{Flat: map[int]int{}, Nested: map[string]map[string]int{}, Inside: []map[int]bool{{}}}
		for _, k := range []int{-40, -1, 0, 1, 2, 127, 128, 300, 70_000} {
			ordered.Flat[k], ordered.Nested[fmt.Sprint(k)], ordered.Inside[0][k] = k, v.Nested[fmt.Sprint(k)], true
		}
		a, b := c.Schema().NewFrame(), c.Schema().NewFrame()
		must(t, errors.Join(c.Quantize(a, &v), c.Quantize(b, &ordered)))
		if !a.Equal(b) {
			t.Fatalf("%x\n%x", a.Bytes, b.Bytes)
		}
	})
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

// restoreAll restores a bomb with data in each field in turn and returns the errors.
func restoreAll(c *Type[bomb], data []byte) (errs []error) {
	s := c.Schema()
	for i := range s.Fields() {
		f := s.NewFrame()
		for k := range s.Fields() {
			_ = s.SetBytes(f, k, []byte{0xc0}) // nil
		}
		_ = s.SetBytes(f, i, data)
		errs = append(errs, c.Restore(new(bomb), f))
	}
	return errs
}

// TestHostilePacked verifies that msgpack whose lengths exceed the data is an error, and that the
// decoder does not allocate by the declared length.
func TestHostilePacked(t *testing.T) {
	c := mustCompile[bomb](t)
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
		for i, err := range restoreAll(c, data) {
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", c.Schema().Fields()[i].Name)) {
				t.Errorf("%s in %s: %v", name, c.Schema().Fields()[i].Name, err)
			}
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
			t.Errorf("%s: %d bytes allocated", name, n)
		}
	}
}

func FuzzRestorePacked(f *testing.F) {
	f.Add([]byte{0xdd, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0x82, 0xa1, 'a', 0x93, 1, 2, 3, 0xa1, 'b', 0x90})
	f.Add([]byte{0x92, 0xd6, 0xff, 0, 0, 0, 1, 0xc0})
	f.Add([]byte{0x84, 0xa4, 'N', 'a', 'm', 'e', 0xa1, 'x', 0xa5, 'P', 'r', 'i', 'c', 'e', 1, 0xa4, 'T', 'a', 'g', 's', 0x90, 0xa4, 'N', 'e', 'x', 't', 0x80})
	c, err := Compile[bomb]("Test", 60)
	must(f, err)
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1000 {
			return
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		restoreAll(c, data)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
			t.Fatalf("%d bytes allocated for %d", n, len(data))
		}
	})
}

type busy struct {
	Next   *busy
	Fields map[string][]struct{ Done chan<- bool }
}

// sealed encodes itself, so the types of its fields do not matter.
type sealed struct{ Done chan bool }

func (s *sealed) MarshalText() ([]byte, error) { return []byte("sealed"), nil }
func (s *sealed) UnmarshalText(_ []byte) error { return nil }

// TestUnpackable verifies that Compile returns an error for a type that msgpack cannot encode, at
// any depth.
func TestUnpackable(t *testing.T) {
	compile := func(_ any, err error) error { return err }
	for want, err := range map[string]error{
		`field "V": type []func(): func() has no form`: compile(Compile[struct {
			V []func() `uplink:"max=9"`
		}]("Test", 0)),
		`type map[string]chan int: chan int has no form`: compile(Compile[struct {
			V map[string]chan int `uplink:"max=9"`
		}]("Test", 0)),
		`complex128 has no form`: compile(Compile[struct {
			V []complex128 `uplink:"max=9"`
		}]("Test", 0)),
		`type *schema.busy: Fields: Done: chan<- bool has no form`: compile(Compile[struct {
			V *busy `uplink:"max=9"`
		}]("Test", 0)),
		`type [2]schema.busy: Fields: Done: chan<- bool has no form in m`: compile(Compile[struct {
			V [2]busy `uplink:"max=9"`
		}]("Test", 0)),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
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
