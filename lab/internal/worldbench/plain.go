package worldbench

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

const (
	// Cells is the number of cells of a plain in each direction.
	Cells = 20
	// MaxObjects is the maximum number of objects of a plain.
	MaxObjects = 1 << 16

	cellSize    = 16.0 // m
	movingShare = 10   // one in this many objects moves
	speed       = 8.0  // maximum along each axis, m/s
	enterBytes  = 600
	// enter and leave are the distances at which a cell enters and leaves a player's view. On
	// average a player sees about 8 cells.
	enter = 0.8 * cellSize
	leave = cellSize
	// moveTicks is the number of ticks between two updates of a player's view.
	moveTicks = 6
)

// plain is a large world. Objects are in a grid of cells; one tenth of them moves. Players walk and
// see the cells around them.
type plain struct {
	typ     *snapshot.Type[object]
	grid    *area.Grid
	start   []object
	seed    uint64
	worlds  map[*replication.World]*plainWorld
	players map[*replication.Replica]*walker
}

// plainWorld is the state of a world.
type plainWorld struct {
	random    *rand.Rand
	objects   []object
	quantizer replication.Quantizer[object]
	speed     []schema.Vec3
	still     []int32                 // rows of objects that do not move
	history   *[snapshot.Ring][]int32 // rows of moving objects in the newest ticks
}

type walker struct {
	random *rand.Rand
	at     schema.Vec3
	speed  schema.Vec3
	watch  *area.Watch
}

// Plain returns a scene with the given number of objects in 20 by 20 cells, of which 10 % move.
// With 10,000 objects each player sees about 200.
func Plain(objects int, seed uint64) (Scene, error) {
	if objects < 1 || objects > MaxObjects {
		return nil, fmt.Errorf("--objects %d: want 1 to %d", objects, MaxObjects)
	}
	typ, err := snapshot.Compile[object]("plain")
	if err != nil {
		return nil, err
	}
	grid, err := area.NewGrid(1, -Cells*cellSize/2, -Cells*cellSize/2, cellSize, Cells, Cells)
	if err != nil {
		return nil, err
	}
	p := &plain{
		typ: typ, grid: grid, seed: seed,
		worlds: map[*replication.World]*plainWorld{}, players: map[*replication.Replica]*walker{},
	}
	random := rand.New(rand.NewPCG(seed, 2))
	for range objects {
		p.start = append(p.start, object{Rotation: schema.Quat{W: 1}, Position: somewhere(random)})
	}
	return p, nil
}

func somewhere(random *rand.Rand) schema.Vec3 {
	return schema.Vec3{X: (random.Float64() - 0.5) * Cells * cellSize, Y: (random.Float64() - 0.5) * Cells * cellSize}
}

// walk moves a position, and changes its speed every two seconds.
func walk(random *rand.Rand, at, v *schema.Vec3) {
	if random.IntN(2*rate) == 0 {
		*v = schema.Vec3{X: (random.Float64()*2 - 1) * speed, Y: (random.Float64()*2 - 1) * speed}
	}
	const limit = Cells * cellSize / 2
	at.X, at.Y = min(max(at.X+v.X/rate, -limit), limit), min(max(at.Y+v.Y/rate, -limit), limit)
}

func (p *plain) Objects() int { return len(p.start) }

func (p *plain) Schema() *snapshot.Schema { return p.typ.Schema() }

func (p *plain) NewWorld() (*replication.World, error) {
	w, err := replication.NewWorldOfSets("plain", nil, p.typ.Schema().NewSet(), rate, rate)
	if err != nil {
		return nil, err
	}
	p.worlds[w] = &plainWorld{
		random: rand.New(rand.NewPCG(p.seed, 3)), objects: slices.Clone(p.start), speed: make([]schema.Vec3, len(p.start)),
		quantizer: replication.NewQuantizer(p.typ), history: new([snapshot.Ring][]int32),
	}
	return w, w.WithAreas(enterBytes)
}

func (p *plain) NewReceiver() (*replication.SnapshotDecoder, error) {
	d := replication.NewSnapshotDecoder(p.typ.Schema(), p.typ.Schema().NewSet())
	return &d, d.Begin(&replication.Offer{TickHz: rate, Areas: true}, nil)
}

func (p *plain) Put(w *replication.World, tick int) error {
	s := p.worlds[w]
	rows := s.history[tick%snapshot.Ring][:0]
	for i := range s.objects {
		o, moves := &s.objects[i], i%movingShare == 0
		if moves {
			walk(s.random, &o.Position, &s.speed[i])
		}
		row, err := s.quantizer.Row(uint16(i), o)
		if err != nil {
			return err
		}
		switch {
		case moves:
			rows = append(rows, row...)
		case tick == 0:
			s.still = append(s.still, row...)
		}
		if err := w.Put(0, snapshot.Object{ID: uint16(i)}, row, p.grid.At(o.Position.X, o.Position.Y)); err != nil {
			return err
		}
	}
	s.history[tick%snapshot.Ring] = rows
	return nil
}

func (p *plain) See(player int, s *replication.Replica, tick int) {
	w := p.players[s]
	if w == nil {
		random := rand.New(rand.NewPCG(p.seed, uint64(4+player)))
		watch, err := area.NewWatch(p.grid, enter, leave)
		if err != nil {
			panic(err) // the radii are constant
		}
		w = &walker{random: random, at: somewhere(random), watch: watch}
		p.players[s] = w
		s.See(w.watch.Move(w.at.X, w.at.Y))
	}
	walk(w.random, &w.at, &w.speed)
	if tick%moveTicks == player%moveTicks {
		s.See(w.watch.Move(w.at.X, w.at.Y))
	}
}

// Correct also accepts objects in the state of an earlier tick, since objects of a group that has
// just entered the view may not be up to date. All worlds of a scene have the same history.
func (p *plain) Correct(shown, _ *snapshot.Set, tick int) bool {
	var w *plainWorld
	for _, one := range p.worlds {
		w = one
	}
	width := p.typ.Schema().Components()
	for i := range shown.Len() {
		id, row := int(shown.Object(i).ID), shown.Row(i)
		at := id / movingShare * width
		is := func(rows []int32) bool { return slices.Equal(row, rows[at:at+width]) }
		if id%movingShare != 0 {
			at = (id - id/movingShare - 1) * width
			if !is(w.still) {
				return false
			}
			continue
		}
		if known := slices.ContainsFunc(w.history[:min(tick+1, snapshot.Ring)], is); !known {
			return false
		}
	}
	return true
}
