package worldbench

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/internal/lab/cubes"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
)

// Scene is the objects of a world, and what each player sees.
type Scene interface {
	NewWorld() (*replication.World, error)
	// Objects returns the number of objects.
	Objects() int
	// Put puts the objects of tick n, quantizing each.
	Put(w *replication.World, n int) error
	// Record remembers tick n for Check.
	Record(n int)
	// Check reports whether a client was right to show these objects in tick n.
	Check(w *replication.World, shown *snapshot.Set, n int) bool
	// Move moves a player.
	Move(player int, s *replication.Stream, n int)
}

// Cube is an object of the scenes, quantized as the recording is.
type Cube struct {
	Orientation schema.Quat `uplink:"bits=9"`
	Position    schema.Vec3 `uplink:"resolution=0.001,min=-131.072,max=131.071"`
	Interacting bool
}

func cubeType() (*snapshot.Type[Cube], error) { return snapshot.Compile[Cube]("cubes") }

// recording is a recorded world.
type recording struct {
	typ    *snapshot.Type[Cube]
	frames [][]Cube
	row    []int32
}

// NewRecording returns the scene of a recording, which all players see.
func NewRecording(frames []cubes.Frame) (Scene, error) {
	typ, err := cubeType()
	if err != nil {
		return nil, err
	}
	r := &recording{typ: typ, row: make([]int32, typ.Schema().Components())}
	for n := range frames {
		all := make([]Cube, len(frames[n]))
		for i := range all {
			c := &frames[n][i]
			row := []int32{c.Largest, c.Smallest[0], c.Smallest[1], c.Smallest[2], c.Position[0], c.Position[1], c.Position[2], c.Interacting}
			if err := typ.Restore(&all[i], row); err != nil {
				return nil, fmt.Errorf("frame %d: %w", n, err)
			}
		}
		r.frames = append(r.frames, all)
	}
	return r, nil
}

func (r *recording) NewWorld() (*replication.World, error) {
	return replication.NewWorld(r.typ, "cubes", Hz, Hz, nil)
}

func (r *recording) Objects() int { return len(r.frames[0]) }

func (r *recording) Put(w *replication.World, n int) error {
	frame := r.frames[n%len(r.frames)]
	for i := range frame {
		if err := r.typ.Quantize(r.row, &frame[i]); err != nil {
			return err
		}
		if err := w.Put(0, snapshot.Object{ID: uint16(i)}, r.row); err != nil {
			return err
		}
	}
	return nil
}

func (r *recording) Record(int) {}

func (r *recording) Check(w *replication.World, shown *snapshot.Set, _ int) bool {
	return shown.Equal(w.Newest())
}

func (r *recording) Move(int, *replication.Stream, int) {}

// plain is a large world: cubes in a grid of cells, of which some move, and players who walk.
type plain struct {
	typ     *snapshot.Type[Cube]
	grid    *area.Grid
	cubes   []Cube
	speed   []schema.Vec3
	row     []int32
	moving  int
	random  *rand.Rand
	players []walker
	history [snapshot.Ring][]int32 // rows of the newest ticks
}

type walker struct {
	x, y, vx, vy float64
	watch        *area.Watch
}

// The cells of a plain, in m.
const (
	cells    = 20
	cellSize = 12.0
)

// NewPlain returns a world of objects in 20 by 20 cells, one in ten of which moves. Each player sees
// the cells around it, with about 200 objects.
func NewPlain(objects, players int, seed uint64) (Scene, error) {
	typ, err := cubeType()
	if err != nil {
		return nil, err
	}
	const low = -cells * cellSize / 2
	p := &plain{typ: typ, row: make([]int32, typ.Schema().Components()), moving: objects / 10, random: rand.New(rand.NewPCG(seed, 2))}
	if p.grid, err = area.NewGrid(1, low, low, cellSize, cells, cells); err != nil {
		return nil, err
	}
	in := func() float64 { return low + p.random.Float64()*cells*cellSize }
	for range objects {
		p.cubes = append(p.cubes, Cube{Orientation: schema.Quat{W: 1}, Position: schema.Vec3{X: in(), Y: in()}})
		p.speed = append(p.speed, schema.Vec3{})
	}
	for range players {
		watch, err := area.NewWatch(p.grid, 0.8*cellSize, cellSize)
		if err != nil {
			return nil, err
		}
		p.players = append(p.players, walker{x: in(), y: in(), watch: watch})
	}
	return p, nil
}

func (p *plain) NewWorld() (*replication.World, error) {
	w, err := replication.NewWorld(p.typ, "plain", Hz, Hz, nil)
	if err == nil {
		err = w.WithAreas(600)
	}
	return w, err
}

func (p *plain) Objects() int { return len(p.cubes) }

// turn changes a velocity now and then, and moves along it within the plain.
func (p *plain) turn(x, y, vx, vy *float64, speed float64) {
	if p.random.IntN(2*Hz) == 0 {
		*vx, *vy = (p.random.Float64()*2-1)*speed, (p.random.Float64()*2-1)*speed
	}
	const limit = cells * cellSize / 2
	*x, *y = min(max(*x+*vx/Hz, -limit), limit), min(max(*y+*vy/Hz, -limit), limit)
}

func (p *plain) Put(w *replication.World, _ int) error {
	for i := range p.cubes {
		c := &p.cubes[i]
		if i%10 == 0 {
			v := &p.speed[i]
			p.turn(&c.Position.X, &c.Position.Y, &v.X, &v.Y, 8)
		}
		if err := p.typ.Quantize(p.row, c); err != nil {
			return err
		}
		if err := w.Put(0, snapshot.Object{ID: uint16(i)}, p.row, p.grid.At(c.Position.X, c.Position.Y)); err != nil {
			return err
		}
	}
	return nil
}

func (p *plain) Record(n int) {
	rows := p.history[n%snapshot.Ring][:0]
	for i := range p.cubes {
		if p.typ.Quantize(p.row, &p.cubes[i]) == nil { // else Put has failed
			rows = append(rows, p.row...)
		}
	}
	p.history[n%snapshot.Ring] = rows
}

// Check accepts objects that are not up to date: those of groups that have just entered the view.
func (p *plain) Check(_ *replication.World, shown *snapshot.Set, n int) bool {
	for i := range shown.Len() {
		row, at, known := shown.Row(i), int(shown.Object(i).ID)*len(p.row), false
		for back := 0; back < min(n+1, snapshot.Ring) && !known; back++ {
			rows := p.history[(n-back)%snapshot.Ring]
			known = slices.Equal(row, rows[at:at+len(row)])
		}
		if !known {
			return false
		}
	}
	return true
}

func (p *plain) Move(player int, s *replication.Stream, n int) {
	w := &p.players[player%len(p.players)]
	p.turn(&w.x, &w.y, &w.vx, &w.vy, 8)
	if n%6 == player%6 {
		s.See(w.watch.Move(w.x, w.y))
	}
}
