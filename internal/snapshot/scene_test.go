package snapshot_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

func testSchema(t testing.TB) *snapshot.Schema {
	s, err := snapshot.NewSchema(
		snapshot.Field{Name: "Team", Class: schema.ClassInteger, N: 1, Lo: -2, Hi: 4},
		snapshot.Field{Name: "Rotation", Class: schema.ClassQuat, N: 4, Lo: -255, Hi: 255},
		snapshot.Field{Name: "Position", Class: schema.ClassNumber, N: 3, Lo: -5000, Hi: 5000},
		snapshot.Field{Name: "Velocity", Class: schema.ClassNumber, N: 2, Lo: -2147483648, Hi: -1},
		snapshot.Field{Name: "Burning", Class: schema.ClassInteger, N: 1, Hi: 1},
	)
	must(t, err)
	return s
}

// scene moves objects, and adds, removes and replaces some.
type scene struct {
	r       *rand.Rand
	schema  *snapshot.Schema
	objects map[uint16]*thing
	churn   int // each object changes once in about this many steps
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
	high = [11]int32{4, 3, 255, 255, 255, 5000, 5000, 5000, -1, -1, 1}
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

// sorted returns the ids in order, so that a seed always produces the same scene.
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
		must(t, set.Add(snapshot.Object{ID: id, Generation: o.generation}, o.row[:]))
	}
}

// sender encodes a world for one client, each snapshot against the newest baseline.
type sender struct {
	snapshot.Encoder
	snapshot.Receipts
	world *snapshot.History
}

func newSender(w *snapshot.History) *sender { return &sender{world: w} }

func (s *sender) send(dst []byte, limit int) ([]byte, snapshot.Info, error) {
	n := s.world.Next() - 1
	b := s.Baseline(n)
	out, info, err := s.Append(dst, s.world, b, limit)
	if err == nil {
		s.Sent(n, b)
	}
	return out, info, err
}
