package snapshot_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
)

func testSchema(t testing.TB) *snapshot.Schema {
	s, err := snapshot.NewSchema(
		snapshot.Field{Name: "Team", Class: schema.ClassInteger, N: 1, Lo: -2, Hi: 5},
		snapshot.Field{Name: "Rotation", Class: schema.ClassQuat, N: 4, Lo: -255, Hi: 255},
		snapshot.Field{Name: "Position", Class: schema.ClassNumber, N: 3, Lo: -5000, Hi: 5000},
		snapshot.Field{Name: "Velocity", Class: schema.ClassNumber, N: 2, Lo: -2147483648, Hi: -1},
		snapshot.Field{Name: "Burning", Class: schema.ClassInteger, N: 1, Hi: 1},
	)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// scene moves objects about, and has some appear, vanish and become others.
type scene struct {
	r       *rand.Rand
	schema  *snapshot.Schema
	objects map[uint16]*thing
	churn   int // changes of objects, one in so many steps of each
	ids     []uint16
}

type thing struct {
	generation uint8
	row, speed [11]int32
}

func newScene(t testing.TB, seed uint64, objects int) *scene {
	s := &scene{rand.New(rand.NewPCG(seed, 7)), testSchema(t), map[uint16]*thing{}, 40, nil}
	for len(s.objects) < objects {
		s.objects[uint16(s.r.IntN(1<<16))] = s.thing(0)
	}
	return s
}

// bounds of each component of schema.
var (
	low  = [11]int32{-2, 0, -255, -255, -255, -5000, -5000, -5000, -2147483648, -2147483648, 0}
	high = [11]int32{5, 3, 255, 255, 255, 5000, 5000, 5000, -1, -1, 1}
)

func (s *scene) thing(generation uint8) *thing {
	t := &thing{generation: generation}
	for k := range t.row {
		t.row[k] = low[k] + int32(s.r.Int64N(int64(high[k])-int64(low[k])+1))
	}
	return t
}

func (s *scene) step() {
	for _, id := range s.sorted() {
		t := s.objects[id]
		switch s.r.IntN(s.churn) {
		case 0:
			delete(s.objects, id)
			s.objects[uint16(s.r.IntN(1<<16))] = s.thing(0)
		case 1:
			s.objects[id] = s.thing(t.generation + 1)
		case 2, 3, 4, 5:
			for k := range t.speed {
				t.speed[k] = int32(s.r.IntN(41) - 20)
			}
			t.speed[0], t.speed[1], t.speed[10] = int32(s.r.IntN(2)), int32(s.r.IntN(2)), int32(s.r.IntN(2))
		case 6, 7:
			t.speed = [11]int32{}
		}
		for k, v := range t.speed {
			t.row[k] = int32(min(max(int64(t.row[k])+int64(v), int64(low[k])), int64(high[k])))
		}
	}
}

// sorted gives the ids in order, so that a seed gives the same scene.
func (s *scene) sorted() []uint16 {
	s.ids = s.ids[:0]
	for id := range s.objects {
		s.ids = append(s.ids, id)
	}
	slices.Sort(s.ids)
	return s.ids
}

func (s *scene) fill(t testing.TB, set *snapshot.Set) {
	for _, id := range s.sorted() {
		o := s.objects[id]
		if err := set.Add(snapshot.Object{ID: id, Generation: o.generation}, o.row[:]); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLoss has whatever arrives decode exactly, in any order, whatever else was lost.
func TestLoss(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		loss := rapid.SampledFrom([]float64{0, .05, .5, .9}).Draw(rt, "loss")
		sc := newScene(t, seed, rapid.IntRange(0, 40).Draw(rt, "objects"))
		var initial *snapshot.Set
		if rapid.Bool().Draw(rt, "initial") {
			initial = sc.schema.NewSet()
			sc.fill(t, initial)
		}
		world := snapshot.NewWorld(sc.schema, initial)
		enc, dec := snapshot.NewEncoder(sc.schema, world), snapshot.NewDecoder(sc.schema, initial)
		type flying struct {
			payload []byte
			set     *snapshot.Set
			seq     uint16
		}
		var sky []flying
		var acks []snapshot.Ack
		for range 120 {
			sc.step()
			sc.fill(t, world.Begin())
			want := sc.schema.NewSet()
			sc.fill(t, want)
			out, info, err := enc.Append(nil, 1<<20)
			if err != nil {
				rt.Fatal(err)
			}
			if sc.r.Float64() >= loss {
				sky = append(sky, flying{out, want, info.Seq})
			}
			for len(sky) > 0 && sc.r.IntN(3) > 0 {
				i := sc.r.IntN(len(sky))
				f := sky[i]
				if sc.r.IntN(5) > 0 { // otherwise it comes again
					sky = append(sky[:i], sky[i+1:]...)
				}
				info, got, err := dec.Decode(f.payload)
				switch {
				case errors.Is(err, snapshot.ErrLate):
				case err != nil:
					rt.Fatal(err)
				case info.Seq != f.seq || !got.Equal(f.set):
					rt.Fatalf("snapshot %d came as another", f.seq)
				}
				acks = append(acks, dec.Ack())
			}
			if len(acks) > 0 && sc.r.Float64() >= loss {
				if err := enc.Ack(acks[sc.r.IntN(len(acks))]); err != nil {
					rt.Fatal(err)
				}
			}
		}
	})
}

func TestRangeErrorNamesObjectAndField(t *testing.T) {
	s := testSchema(t)
	row := [11]int32{0, 0, 0, 0, 0, 0, 5001, 0, -1, -1, 0}
	err := s.NewSet().Add(snapshot.Object{ID: 300}, row[:])
	const want = `snapshot: object 300: field "Position": component 5001, want -5000 to 5000`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestBadSets(t *testing.T) {
	s := testSchema(t)
	set := s.NewSet()
	row := [11]int32{0, 0, 0, 0, 0, 0, 0, 0, -1, -1, 0}
	for id := range snapshot.MaxObjects {
		if err := set.Add(snapshot.Object{ID: uint16(id)}, row[:]); err != nil {
			t.Fatal(err)
		}
	}
	if set.Add(snapshot.Object{ID: 60000}, row[:]) == nil {
		t.Error("more than MaxObjects were taken")
	}
	set.Reset()
	_ = set.Add(snapshot.Object{ID: 5}, row[:])
	for _, id := range []uint16{5, 4} {
		if set.Add(snapshot.Object{ID: id}, row[:]) == nil {
			t.Errorf("object %d was taken after 5", id)
		}
	}
	if set.Add(snapshot.Object{ID: 6}, row[:10]) == nil || set.Len() != 1 {
		t.Error("a short row was taken")
	}
}

func TestImpossibleAck(t *testing.T) {
	sc := newScene(t, 1, 3)
	world := snapshot.NewWorld(sc.schema, nil)
	enc := snapshot.NewEncoder(sc.schema, world)
	world.Begin()
	if _, _, err := enc.Append(nil, 100); err != nil {
		t.Fatal(err)
	}
	if err := enc.Ack(snapshot.Ack{Newest: 1}); !errors.Is(err, snapshot.ErrAck) {
		t.Errorf("got %v", err)
	}
	world.Begin() // and not sent
	if err := enc.Ack(snapshot.Ack{Newest: 1}); !errors.Is(err, snapshot.ErrAck) {
		t.Errorf("got %v", err)
	}
}

func TestTooLarge(t *testing.T) {
	sc := newScene(t, 1, 30)
	world := snapshot.NewWorld(sc.schema, nil)
	enc := snapshot.NewEncoder(sc.schema, world)
	sc.fill(t, world.Begin())
	out, info, err := enc.Append([]byte("x"), 20)
	if !errors.Is(err, snapshot.ErrTooLarge) || string(out) != "x" || info.Objects != 30 {
		t.Fatalf("got %q, %+v, %v", out, info, err)
	}
	if err := enc.Ack(snapshot.Ack{}); !errors.Is(err, snapshot.ErrAck) {
		t.Errorf("an ack of what was not sent gave %v", err)
	}
}

func TestMissingBaseline(t *testing.T) {
	sc := newScene(t, 1, 3)
	dec := snapshot.NewDecoder(sc.schema, nil)
	for _, payload := range [][]byte{{9<<6&255 | 1, 9 >> 2, 1}, {60, 0, 1}, {62, 255}} {
		if _, _, err := dec.Decode(payload); !errors.Is(err, snapshot.ErrBaselineMissing) {
			t.Errorf("% x gave %v", payload, err)
		}
	}
	if _, _, err := dec.Decode([]byte{1}); !errors.Is(err, snapshot.ErrMalformed) {
		t.Errorf("got %v", err)
	}
	if !dec.Ack().None {
		t.Error("something was acked")
	}
}

// TestLongRun passes the points where the header's short and long sequences wrap.
func TestLongRun(t *testing.T) {
	sc := newScene(t, 2, 2)
	world := snapshot.NewWorld(sc.schema, nil)
	enc, dec := snapshot.NewEncoder(sc.schema, world), snapshot.NewDecoder(sc.schema, nil)
	for n := range 1<<16 + 2000 {
		sc.step()
		set := world.Begin()
		sc.fill(t, set)
		if n%2048 > 1900 { // nothing comes for a while, longer than the ring
			continue
		}
		out, _, err := enc.Append(nil, 1<<16)
		if err != nil {
			t.Fatal(err)
		}
		info, got, err := dec.Decode(out)
		if err != nil || info.Seq != uint16(n) || !got.Equal(set) {
			t.Fatalf("snapshot %d came as %d: %v", n, info.Seq, err)
		}
		if err := enc.Ack(dec.Ack()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAllocations(t *testing.T) {
	sc := newScene(t, 3, 901)
	sc.churn = 1000
	world := snapshot.NewWorld(sc.schema, nil)
	enc, dec := snapshot.NewEncoder(sc.schema, world), snapshot.NewDecoder(sc.schema, nil)
	buf := make([]byte, 0, 1<<16)
	once := func() {
		sc.fill(t, world.Begin())
		out, _, err := enc.Append(buf, 1<<16)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := dec.Decode(out); err != nil {
			t.Fatal(err)
		}
		if err := enc.Ack(dec.Ack()); err != nil {
			t.Fatal(err)
		}
		sc.step()
	}
	for range 3 * snapshot.Ring {
		once()
	}
	sc.churn = 1 << 30 // no maps grow
	if n := testing.AllocsPerRun(100, once); n != 0 {
		t.Errorf("%g allocations a snapshot", n)
	}
}
