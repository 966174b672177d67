package msgpack

import (
	"bytes"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	lib "github.com/vmihailenco/msgpack/v5"
)

type inner struct {
	Names map[string]int
	When  time.Time
}

type outer struct {
	ByID  map[int32]inner
	Any   map[any]any
	Flags []map[bool]string
}

func sample(order []int32) outer {
	o := outer{ByID: map[int32]inner{}, Any: map[any]any{}}
	for _, id := range order {
		o.ByID[id] = inner{
			Names: map[string]int{"x": int(id), strings.Repeat("long", int(id&7)): 2, "y": -3},
			When:  time.Unix(1e9, int64(id)).UTC(),
		}
		o.Any[id] = "n"
		o.Any[string('a'+id&7)] = map[string]uint16{"b": 1, "a": 2}
	}
	o.Flags = []map[bool]string{{true: "t", false: "f"}, nil}
	return o
}

// TestEqualValuesGiveEqualBytes builds one value in two orders, many times,
// since Go's maps change their order each time.
func TestEqualValuesGiveEqualBytes(t *testing.T) {
	want, err := AppendMarshal(nil, sample([]int32{1, 2, 3, 70000}))
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		got, err := AppendMarshal([]byte("before"), sample([]int32{70000, 3, 2, 1}))
		if err != nil || !bytes.Equal(got, append([]byte("before"), want...)) {
			t.Fatalf("%v\n%x\n%x", err, got, want)
		}
	}
	var back outer
	if err := Unmarshal(want, &back); err != nil {
		t.Fatal(err)
	}
	if again, err := AppendMarshal(nil, back); err != nil || !bytes.Equal(again, want) {
		t.Fatalf("%v\n%x again as\n%x", err, want, again)
	}
	if got, err := AppendMarshal([]byte("before"), make(chan int)); err == nil || string(got) != "before" {
		t.Errorf("a channel: %q, %v", got, err)
	}
}

func TestRefused(t *testing.T) {
	deep := append(bytes.Repeat([]byte{0x91}, 40), 0xc0)
	for name, b := range map[string][]byte{
		"nothing":                     {},
		"never used byte":             {0xc1},
		"array of 4 billion":          {0xdd, 0xff, 0xff, 0xff, 0xff, 0x01},
		"map of 65535":                {0xde, 0xff, 0xff, 0x01},
		"string of 2 billion":         {0xdb, 0x7f, 0xff, 0xff, 0xff},
		"array cut short":             {0x92, 0x01},
		"map without a value":         {0x81, 0x01},
		"count cut short":             {0xdc, 0x00},
		"number cut short":            {0xcf, 1, 2, 3},
		"ext cut short":               {0xc7, 0x02, 0x05, 0x00},
		"two values":                  {0x01, 0x02},
		"deeper than any value needs": deep,
	} {
		var v any
		if err := Unmarshal(b, &v); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// targets are pointers to values of types that the decoder reads in ways of their own.
func targets() []any {
	return []any{
		new(any), new(outer), new(map[int]bool), new(map[string]any), new(map[string]string), new(map[any]any),
		new([]map[string]any), new(time.Time), new([]byte), new([]string), new([4]uint16), new([][]int),
	}
}

// allocated is how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestMapInExtension verifies that a map in the body of an extension or after it is an error.
func TestMapInExtension(t *testing.T) {
	for name, b := range map[string][]byte{
		"of 4 billion":        {0xd7, 0x05, 0xdf, 0xff, 0xff, 0xff, 0xff, 0, 0, 0},
		"of 65535":            {0xd6, 0xff, 0xde, 0xff, 0xff, 0x00},
		"of 65535 in 3 bytes": {0xc7, 0x03, 0x05, 0xde, 0xff, 0xff},
		"of 1":                {0xc8, 0x00, 0x03, 0x05, 0x81, 0x01, 0xc3},
		"that is nil":         {0xd4, 0x05, 0xc0},
	} {
		for _, v := range []any{new(map[int]bool), new(map[string]any), new(map[string]string), new(map[any]any)} {
			var err error
			if n := allocated(func() { err = Unmarshal(b, v) }); err == nil || n > 64<<10 {
				t.Errorf("%s, for %T: %v, %d bytes allocated", name, v, err, n)
			}
		}
		nested := append([]byte{0x92}, append(b, 0x80)...)
		if err := Unmarshal(nested, new([]map[int]bool)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s in an array: %v", name, err)
		}
	}
}

// TestTimes verifies the round trip of times whose encoded bytes look like other values.
func TestTimes(t *testing.T) {
	for first := range int64(0xee) {
		want := map[string]time.Time{"a": time.Unix(1e9, first<<22).UTC(), "b": time.Unix(first<<24, 0).UTC(), "c": time.Unix(1e12, first<<22).UTC()}
		b, err := AppendMarshal(nil, want)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]time.Time
		if err := Unmarshal(b, &got); err != nil {
			t.Fatalf("%x: %v", b, err)
		}
		for k := range want {
			if !got[k].Equal(want[k]) {
				t.Errorf("%v came as %v", want[k], got[k])
			}
		}
		var loose any
		if err := Unmarshal(b, &loose); err != nil || len(loose.(map[string]any)) != len(want) {
			t.Errorf("%x: %v, %v", b, loose, err)
		}
	}
}

// FuzzUnmarshal checks that no input makes a decoder allocate for more than is
// there, and that what is accepted has one canonical form.
func FuzzUnmarshal(f *testing.F) {
	b, err := AppendMarshal(nil, sample([]int32{1, 9}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte{0xdd, 0x00, 0x00, 0x00, 0x01, 0x01})
	f.Add([]byte{0xc7, 0x03, 0x05, 0xde, 0x78, 0x30})
	f.Add([]byte{0x82, 0xa1, 'b', 0x01, 0xa1, 'a', 0x02})
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := check(b, nil); err != nil {
			return
		}
		sorted, rest, err := appendSorted(nil, b, 0)
		if err != nil || len(rest) != 0 || len(sorted) != len(b) {
			t.Fatalf("%x sorts to %x, %x, %v", b, sorted, rest, err)
		}
		again, _, err := appendSorted(nil, sorted, 0)
		if err != nil || !bytes.Equal(again, sorted) {
			t.Fatalf("%x sorts again to %x, %v", sorted, again, err)
		}
		for _, v := range targets() { // whatever the decoder thinks of it: no panic, no bytes for nothing
			if n := allocated(func() { _ = Unmarshal(b, v) }); n > 64<<10+1000*uint64(len(b)) {
				t.Fatalf("%d bytes allocated for %d, %T", n, len(b), v)
			}
		}
	})
}

// TestIntegerRanges decodes integers next to the bounds of the types of fields.
func TestIntegerRanges(t *testing.T) {
	type inner struct {
		_msgpack struct{} `msgpack:",as_array"` //nolint:unused // tells msgpack to leave the names out
		N        int16
	}
	type message struct {
		_msgpack struct{} `msgpack:",as_array"` //nolint:unused // tells msgpack to leave the names out
		Byte     uint8
		Hashes   []uint16
		Inner    []inner
		Int      int
		Float    float64
		Hash     uint64
	}
	for _, c := range []struct {
		value any
		ok    bool
	}{
		{[]any{0, nil, nil, 0, 0, 0}, true},
		{[]any{255, []int{65535}, []any{[]any{-32768}}, math.MinInt32, -1, uint64(math.MaxUint64)}, true},
		{[]any{256, nil, nil, 0, 0, 0}, false},
		{[]any{-1, nil, nil, 0, 0, 0}, false},
		{[]any{0, []int{1, 65536}, nil, 0, 0, 0}, false},
		{[]any{0, nil, []any{[]any{-32769}}, 0, 0, 0}, false},
		{[]any{0, nil, []any{[]any{0}, []any{32768}}, 0, 0, 0}, false},
		{[]any{0, nil, nil, uint64(math.MaxInt64) + 1, 0, 0}, false},
		{[]any{0, nil, nil, int64(1) << 31, 0, 0}, math.MaxInt > math.MaxInt32},
		{[]any{0, nil, nil, 0, 0, -1}, false},
	} {
		b, err := lib.Marshal(c.value)
		if err != nil {
			t.Fatal(err)
		}
		var m message
		if err := Unmarshal(b, &m); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrMalformed) {
			t.Errorf("%v: %+v, %v", c.value, m, err)
		}
	}
}
