package replication

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
)

type thing struct {
	At    schema.Vec2 `uplink:"resolution=1"`
	Mark  bool
	Label string `uplink:"max=8"`
}

func compile(t testing.TB) *snapshot.Type[thing] {
	t.Helper()
	typ, err := snapshot.Compile[thing]("things")
	if err != nil {
		t.Fatal(err)
	}
	return typ
}

// TestTicks checks that each received snapshot has its tick, whatever ticks a world has and
// whichever snapshots are lost.
func TestTicks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var there, here Ticks
		seq := rapid.Uint16().Draw(t, "first")
		tick := rapid.Uint64Range(0, 1<<40).Draw(t, "tick")
		held := map[uint16]bool{}
		payload := []byte("payload")
		for n := range 200 {
			there.Set(seq, tick)
			distance := rapid.IntRange(0, min(n, snapshot.Ring-1)).Draw(t, "distance")
			if !held[seq-uint16(distance)] {
				distance = 0
			}
			b := append(there.Append(nil, seq, distance), payload...)
			if rapid.IntRange(0, 3).Draw(t, "lost") != 0 {
				offset, rest, err := parseTick(b)
				if err != nil || !bytes.Equal(rest, payload) {
					t.Fatalf("%x: %q, %v", b, rest, err)
				}
				if got, err := here.resolve(seq, distance, offset); err != nil || got != tick {
					t.Fatalf("tick %d, %v, want %d", got, err, tick)
				}
				if here.age(seq, distance) != there.age(seq, distance) {
					t.Fatalf("snapshot %d is %d ticks from its baseline, want %d", seq, here.age(seq, distance), there.age(seq, distance))
				}
				held[seq] = true
			}
			delete(held, seq-snapshot.Ring+1)
			seq++
			tick += rapid.Uint64Range(1, 1000).Draw(t, "step")
		}
	})
}

func TestTickBounds(t *testing.T) {
	for _, b := range [][]byte{nil, {0x80}, bytes.Repeat([]byte{0xff}, 12), {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}} {
		if _, _, err := parseTick(b); !errors.Is(err, snapshot.ErrMalformed) {
			t.Errorf("%x: %v", b, err)
		}
	}
	var ticks Ticks
	for _, offset := range []int64{-1, MaxTick + 1} {
		if _, err := ticks.resolve(0, 0, offset); !errors.Is(err, snapshot.ErrMalformed) {
			t.Errorf("tick %d: %v", offset, err)
		}
	}
}

// fill puts an initial state.
func fill(put func(uint16, uint8, *thing) error) error {
	for i := range 30 {
		if err := put(uint16(3*i), uint8(i), &thing{schema.Vec2{X: float64(i * i)}, i%2 == 0, "abcdefgh"[:i%9]}); err != nil {
			return err
		}
	}
	return nil
}

func TestInitial(t *testing.T) {
	typ := compile(t)
	set, err := Fill(typ, fill)
	if err != nil || set.Len() != 30 {
		t.Fatal(set.Len(), err)
	}
	b, err := encodeInitial(typ.Schema(), set, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseInitial(typ.Schema(), b)
	if err != nil || !got.Equal(set) || Hash(got) != Hash(set) {
		t.Fatalf("%v, equal: %v", err, got.Equal(set))
	}
	if _, err := encodeInitial(typ.Schema(), set, len(b)-1); !errors.Is(err, snapshot.ErrTooLarge) {
		t.Errorf("one byte too many: %v", err)
	}
	empty, err := Fill(typ, nil)
	if err != nil || empty.Len() != 0 || Hash(empty) != 0 {
		t.Errorf("nothing: %d, %x, %v", empty.Len(), Hash(empty), err)
	}
	if b, err := encodeInitial(typ.Schema(), empty, 0); len(b) != 0 || err != nil {
		t.Errorf("nothing: %x, %v", b, err)
	}
	bad := func(put func(uint16, uint8, *thing) error) error { return put(1, 0, &thing{At: schema.Vec2{X: 1e9}}) }
	var out *schema.RangeError
	if _, err := Fill(typ, bad); !errors.As(err, &out) {
		t.Errorf("out of range: %v", err)
	}
}

// TestHash checks that any difference changes the hash.
func TestHash(t *testing.T) {
	typ := compile(t)
	hash := func(id uint16, g uint8, v thing) uint64 {
		set := typ.Schema().NewSet()
		if err := typ.Add(set, snapshot.Object{ID: id, Generation: g}, &v); err != nil {
			t.Fatal(err)
		}
		return Hash(set)
	}
	one := hash(1, 0, thing{})
	for _, other := range []uint64{hash(2, 0, thing{}), hash(1, 1, thing{}), hash(1, 0, thing{Mark: true}), hash(1, 0, thing{Label: "a"})} {
		if other == one {
			t.Error("the same hash")
		}
	}
}

func FuzzParse(f *testing.F) {
	var t Ticks
	t.Set(5, 1000)
	f.Add(t.Append(nil, 5, 0))
	f.Add([]byte{0x80, 0x80})
	f.Fuzz(func(t *testing.T, b []byte) {
		offset, payload, err := parseTick(b)
		if err != nil {
			return
		}
		var ticks Ticks
		if tick, err := ticks.resolve(9, 0, offset); err == nil {
			again := append(ticks.Append(nil, 9, 0), payload...)
			if o, _, err := parseTick(again); err != nil || o != offset || tick > MaxTick {
				t.Fatalf("tick %d, %x, %v", tick, again, err)
			}
		}
	})
}

func FuzzParseInitial(f *testing.F) {
	typ := compile(f)
	set, err := Fill(typ, fill)
	if err != nil {
		f.Fatal(err)
	}
	b, err := encodeInitial(typ.Schema(), set, 10_000)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := parseInitial(typ.Schema(), b)
		if err != nil {
			return
		}
		var v thing
		for i := range got.Len() {
			if err := typ.Get(&v, got, i); err != nil {
				t.Fatal(err)
			}
		}
	})
}
