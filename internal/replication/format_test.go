package replication

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

type thing struct {
	At    schema.Vec2 `uplink:"resolution=1"`
	Mark  bool
	Label string `uplink:"max=8"`
}

func compile(t testing.TB) *snapshot.Type[thing] {
	typ, err := snapshot.Compile[thing]("things")
	must(t, err)
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
				if got, err := here.resolve(seq, distance, offset, 1e6); err != nil || got != tick {
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
	last := int64(TickAt(maxTime, 60))
	for _, c := range []struct {
		offset int64
		hz     float64
		ok     bool
	}{
		{-1, 60, false},
		{0, 60, true},
		{last, 60, true},
		{last + 1, 60, false},
		{MaxTick, 1e9, true},
		{MaxTick + 1, 1e9, false},
	} {
		tick, err := ticks.resolve(0, 0, c.offset, c.hz)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, snapshot.ErrMalformed) || err == nil && tick != uint64(c.offset) {
			t.Errorf("tick %d at %v Hz: %d, %v", c.offset, c.hz, tick, err)
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
	must(t, err)
	b, err := encodeInitial(typ.Schema(), set, 10_000)
	must(t, err)
	got, err := parseInitial(typ.Schema(), b)
	must(t, err)
	if !got.Equal(set) {
		t.Error("the initial state changed")
	}
	if _, err := encodeInitial(typ.Schema(), set, len(b)-1); !errors.Is(err, snapshot.ErrTooLarge) {
		t.Errorf("one byte too many: %v", err)
	}
	empty, err := Fill(typ, nil)
	if err != nil || Hash(empty) != 0 {
		t.Errorf("nothing: %x, %v", Hash(empty), err)
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
		if tick, err := ticks.resolve(9, 0, offset, 1e9); err == nil {
			again := append(ticks.Append(nil, 9, 0), payload...)
			if o, _, err := parseTick(again); err != nil || o != offset || tick > MaxTick {
				t.Fatalf("tick %d, %x, %v", tick, again, err)
			}
		}
	})
}

func TestOfferLimits(t *testing.T) {
	good := Offer{Name: "cubes", RateHz: 60, TickHz: 60}
	for name, change := range map[string]func(*Offer){
		"number":     func(o *Offer) { o.Number = MaxReplicas },
		"no name":    func(o *Offer) { o.Name = "" },
		"name":       func(o *Offer) { o.Name = strings.Repeat("x", MaxName+1) },
		"fields":     func(o *Offer) { o.Fields = make([]string, maxFields+1) },
		"types":      func(o *Offer) { o.Types = make([]OfferedType, MaxTypes+1) },
		"no type":    func(o *Offer) { o.Types = make([]OfferedType, 1) },
		"type twice": func(o *Offer) { o.Types = []OfferedType{{Name: "lamp"}, {Name: "lamp"}} },
		"no rate":    func(o *Offer) { o.RateHz = 0 },
		"velocities": func(o *Offer) { o.PerTick = []int64{1} },
		"NaN":        func(o *Offer) { o.RateHz = math.NaN() },
		"rate":       func(o *Offer) { o.RateHz = MaxRate + 1 },
		"no tick":    func(o *Offer) { o.TickHz = 0 },
		"negative":   func(o *Offer) { o.Initial = -1 },
		"large":      func(o *Offer) { o.Initial = MaxInitial + 1 },
	} {
		o := good
		change(&o)
		b, err := o.Append(nil)
		must(t, err)
		if _, err := ParseOffer(b[1:]); !errors.Is(err, message.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b, err := good.Append(nil)
	must(t, err)
	_, err = ParseOffer(b[1:])
	must(t, err)
}

func TestInvalidReplies(t *testing.T) {
	p := newPair(t)
	explained := func(number uint8, a Answer, why message.BindAnswer) []byte {
		b, err := AppendExplained(nil, number, a, &why)
		must(t, err)
		return b[1:]
	}
	unknown := message.BindAnswer{Reason: message.ReasonUnknown, Theirs: strings.Repeat("n", MaxName)}
	if _, _, why, err := parseReply(explained(NoOffer, Refused, unknown)); err != nil || why.Theirs != unknown.Theirs {
		t.Errorf("a world that was not offered: %+v, %v", why, err)
	}
	long, other := unknown, unknown
	long.Theirs += "n"
	other.Reason = message.ReasonSchema
	for _, b := range [][]byte{
		nil,
		{3},
		{3, 1, 1},
		{MaxReplicas, 1},
		{3, byte(answers)},
		{NoOffer, byte(Refused)},
		explained(NoOffer, Ready, unknown),
		explained(NoOffer, Refused, long),
		explained(NoOffer, Refused, other),
		explained(NoOffer-1, Refused, unknown),
	} {
		if err := p.replicas.HandleReply(b, &p.queue, p.now); !errors.Is(err, message.ErrMalformed) {
			t.Errorf("%x: %v", b, err)
		}
		if _, _, _, err := parseReply(b); !errors.Is(err, message.ErrMalformed) {
			t.Errorf("%x: %v", b, err)
		}
	}
}

func FuzzOffer(f *testing.F) {
	for _, o := range []Offer{
		{Name: "cubes", Codec: SnapshotCodec, Fields: []string{"a", "b"}, RateHz: 60, TickHz: 60, Initial: 1000},
		{Name: "town", Codec: SnapshotCodec, RateHz: 20, TickHz: 60, Areas: true, Types: []OfferedType{{Name: "lamp", Fields: []string{"c"}}, {Name: "car"}}},
		{Name: "cubes", Codec: StateCodec, Fields: []string{"a", "b"}, RateHz: 60, TickHz: 60, PerTick: []int64{1, 1 << 40}},
	} {
		b, err := o.Append(nil)
		must(f, err)
		f.Add(b[1:])
	}
	f.Add([]byte{0xdd, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := ParseOffer(b)
		if err != nil {
			return
		}
		again, err := o.Append(nil)
		must(t, err)
		if got, err := ParseOffer(again[1:]); err != nil || !reflect.DeepEqual(got, o) {
			t.Fatalf("%+v, %v, want %+v", got, err, o)
		}
	})
}
