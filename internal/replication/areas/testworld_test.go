package areas

import (
	"math/rand/v2"
	"slices"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/uplinktest/randomrow"
)

// testWorld is a world of objects of random types that walk through a grid of areas.
type testWorld struct {
	world   *History
	kinds   []*kind
	rng     *rand.Rand
	side    int // cells of a row of the grid
	builder Builder
	past    [8 * snapshot.Ring]objects // by number of the snapshot
	calm    bool                       // nothing jumps
}

// kind is the objects of a type.
type kind struct {
	typ     *Type
	schema  *snapshot.Schema
	walkers []*walker // ascending ids
}

type walker struct {
	*randomrow.Object
	id     snapshot.Object
	x, y   int32
	vx, vy int32
	in     []area.ID
}

// objects is the objects of each type in a snapshot.
type objects []map[snapshot.Object]placed

type placed struct {
	row []int32
	in  []area.ID
}

// sees reports whether an object is visible to a client that sees some areas.
func (o *placed) sees(in []area.ID) bool {
	return len(o.in) == 0 || slices.ContainsFunc(o.in, func(a area.ID) bool { return slices.Contains(in, a) })
}

const (
	cell  = 1000      // size
	teams = 1_000_000 // the first area of a team
)

// newTestWorld returns a testWorld whose first snapshot has the number first.
func newTestWorld(seed uint64, side, types, objects int, first uint64) *testWorld {
	t := &testWorld{world: NewHistory(), rng: rand.New(rand.NewPCG(seed, 1)), side: side}
	t.world.next = first
	for range types {
		s := randomrow.Schema(t.rng)
		t.kinds = append(t.kinds, &kind{typ: t.world.AddType(s), schema: s})
	}
	for id := range objects {
		k := t.kinds[t.rng.IntN(types)]
		k.walkers = append(k.walkers, t.spawn(k.schema, snapshot.Object{ID: uint16(id)}))
	}
	return t
}

func (t *testWorld) schemas() (out []*snapshot.Schema) {
	for _, k := range t.kinds {
		out = append(out, k.schema)
	}
	return out
}

func (t *testWorld) spawn(s *snapshot.Schema, id snapshot.Object) *walker {
	w := &walker{Object: randomrow.New(t.rng, s), id: id}
	t.jump(w)
	return w
}

func (t *testWorld) jump(w *walker) {
	limit := int32(t.side * cell)
	w.x, w.y = t.rng.Int32N(limit), t.rng.Int32N(limit)
}

// step moves the walkers.
func (t *testWorld) step() { t.stepWith(nil, nil) }

// stepWith moves the walkers. Others are put into areas of their own.
func (t *testWorld) stepWith(others []*walker, where func(*walker) area.ID) {
	t.world.Begin()
	crowd := !t.calm && t.rng.IntN(50) == 0 // some walkers meet in one cell
	place := &walker{}
	t.jump(place)
	for _, k := range t.kinds {
		for i, w := range k.walkers {
			if !t.calm && t.rng.IntN(1200) == 0 {
				w = t.spawn(k.schema, snapshot.Object{ID: w.id.ID, Generation: w.id.Generation + 1})
				k.walkers[i] = w
			}
			if crowd && t.rng.IntN(4) == 0 {
				w.x, w.y = place.x, place.y
			}
			t.move(w)
			must(t.world.Put(k.typ, w.id, w.Row, w.in...))
		}
	}
	for _, w := range others {
		must(t.world.Put(t.kinds[len(t.kinds)-1].typ, w.id, w.Row, where(w)))
	}
	t.world.Commit()
	t.past[t.newest()%uint64(len(t.past))] = t.objects()
}

// newest returns the number of the newest snapshot.
func (t *testWorld) newest() uint64 { return t.world.next - 1 }

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// move moves a walker into its areas: a cell, and perhaps that of a team. Some are in no cell.
func (t *testWorld) move(w *walker) {
	switch t.rng.IntN(60) {
	case 0:
		w.vx, w.vy = t.rng.Int32N(81)-40, t.rng.Int32N(81)-40
	case 1:
		w.vx, w.vy = 0, 0
	case 2:
		if !t.calm && t.rng.IntN(10) == 0 {
			t.jump(w)
		}
	}
	limit := int32(t.side*cell - 1)
	w.x, w.y = min(max(w.x+w.vx, 0), limit), min(max(w.y+w.vy, 0), limit)
	w.Step(t.rng)
	w.in = nil
	if w.id.ID%50 != 7 {
		w.in = append(w.in, t.cell(w.x, w.y))
	}
	if w.id.ID%7 == 0 {
		w.in = append(w.in, teams+area.ID(w.id.ID/7%3))
	}
}

func (t *testWorld) cell(x, y int32) area.ID { return area.ID(1 + int(x/cell) + t.side*int(y/cell)) }

// objects returns the objects of the newest snapshot.
func (t *testWorld) objects() objects {
	out := make(objects, len(t.kinds))
	for i, k := range t.kinds {
		out[i] = map[snapshot.Object]placed{}
		for _, w := range k.walkers {
			out[i][w.id] = placed{slices.Clone(w.Row), w.in}
		}
	}
	return out
}

// was reports whether an object was in a state in one of the snapshots before n that a client may
// still show.
func (t *testWorld) was(typ int, o snapshot.Object, row []int32, n uint64) bool {
	for age := range uint64(len(t.past)) {
		past := t.past[(n-age)%uint64(len(t.past))]
		if past == nil {
			break
		}
		if p, ok := past[typ][o]; ok && slices.Equal(p.row, row) {
			return true
		}
	}
	return false
}
