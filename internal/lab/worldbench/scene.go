package worldbench

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/uplink-rpc/uplink/internal/lab/cubes"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
)

// Scene is a world that can be played any number of times. It decides what a player sees: in the
// scenes of this package everything.
type Scene interface {
	// Objects returns the number of objects.
	Objects() int
	// Schema returns the schema of the objects.
	Schema() *snapshot.Schema
	// NewWorld returns a world at its initial state, which all clients know.
	NewWorld() (*replication.World, error)
	// NewReceiver returns the decoder of a client.
	NewReceiver() (*replication.SnapshotDecoder, error)
	// Put adds the objects at a tick, from 0 on, to the open set of a world.
	Put(w *replication.World, tick int) error
}

// Play returns the sets of the first ticks of a scene.
func Play(s Scene, ticks int) (sets []*snapshot.Set, err error) {
	w, err := s.NewWorld()
	if err != nil {
		return nil, err
	}
	for n := range ticks {
		if err := errors.Join(w.Begin(uint64(n)), s.Put(w, n)); err != nil {
			return nil, err
		}
		set := s.Schema().NewSet()
		set.CopyFrom(w.Open())
		sets = append(sets, set)
		w.Commit()
	}
	return sets, nil
}

// rate is the number of ticks per second of a scene.
const rate = cubes.Rate

// object is a cube as a game would declare it, with the resolution of the recordings.
type object struct {
	Rotation    schema.Quat `uplink:"bits=9"`
	Position    schema.Vec3 `uplink:"resolution=0.001953125,min=-256,max=255.998046875"`
	Interacting bool
}

// scene implements what scenes have in common.
type scene struct {
	typ     *snapshot.Type[object]
	initial []object
}

func newScene(initial []object) (*scene, error) {
	typ, err := snapshot.Compile[object]("world")
	return &scene{typ, initial}, err
}

func (s *scene) Objects() int { return len(s.initial) }

func (s *scene) Schema() *snapshot.Schema { return s.typ.Schema() }

func (s *scene) NewWorld() (*replication.World, error) {
	return replication.NewWorld(s.typ, "world", rate, rate, s.start)
}

func (s *scene) start(put func(id uint16, generation uint8, v *object) error) error {
	var err error
	for i := range s.initial {
		err = errors.Join(err, put(uint16(i), 0, &s.initial[i]))
	}
	return err
}

func (s *scene) NewReceiver() (*replication.SnapshotDecoder, error) {
	set, err := replication.Fill(s.typ, s.start)
	if err != nil {
		return nil, err
	}
	d := replication.NewSnapshotDecoder(s.typ.Schema(), set)
	return &d, d.Begin(&replication.Offer{Initial: 1, Hash: replication.Hash(set)}, nil)
}

func (s *scene) put(w *replication.World, objects []object) error {
	for i := range objects {
		if err := s.typ.Add(w.Open(), snapshot.Object{ID: uint16(i)}, &objects[i]); err != nil {
			return err
		}
	}
	return nil
}

// recorded plays the frames of a recording forward and backward.
type recorded struct {
	*scene
	frames [][]object
}

// Recorded returns the scene of a recording of at least two frames.
func Recorded(frames []cubes.Frame) (Scene, error) {
	if len(frames) < 2 {
		return nil, fmt.Errorf("worldbench: %d frames, want at least 2", len(frames))
	}
	r := recorded{frames: make([][]object, len(frames))}
	for n := range frames {
		for i := range frames[n] {
			c := &frames[n][i]
			r.frames[n] = append(r.frames[n], object{c.Orientation(), c.Meters(), c.Interacting != 0})
		}
	}
	var err error
	r.scene, err = newScene(r.frames[0])
	return r, err
}

func (r recorded) Put(w *replication.World, tick int) error {
	n := len(r.frames)
	if tick %= 2*n - 2; tick >= n {
		tick = 2*n - 2 - tick
	}
	return r.put(w, r.frames[tick])
}

// Sizes of a synthetic scene.
const (
	// Cells is the number of cells of a synthetic scene, in each direction.
	Cells = 20
	// movingShare is the number of objects of which one moves.
	movingShare = 10
	cellSize    = 16.0 // m
)

// synthetic is a plain with objects in random places, of which every tenth one circles.
type synthetic struct {
	*scene
	now []object
}

// Synthetic returns a scene of a number of objects, of which 10 % move.
func Synthetic(objects int, seed uint64) (Scene, error) {
	if objects < 1 || objects > snapshot.MaxObjects {
		return nil, fmt.Errorf("worldbench: %d objects, want 1 to %d", objects, snapshot.MaxObjects)
	}
	random := rand.New(rand.NewPCG(seed, 2))
	initial := make([]object, objects)
	for i := range initial {
		place := func() float64 { return (random.Float64() - 0.5) * (Cells - 2) * cellSize }
		initial[i] = object{Rotation: schema.Quat{W: 1}, Position: schema.Vec3{X: place(), Y: place()}}
	}
	s, err := newScene(initial)
	return synthetic{s, make([]object, objects)}, err
}

func (s synthetic) Put(w *replication.World, tick int) error {
	copy(s.now, s.initial)
	for i := 0; i < len(s.now); i += movingShare {
		o := &s.now[i]
		angle := float64(tick)/rate + float64(i)
		o.Position.X += 2 * math.Cos(angle)
		o.Position.Y += 2 * math.Sin(angle)
		o.Rotation = schema.Quat{Z: math.Sin(angle / 2), W: math.Cos(angle / 2)}
	}
	return s.put(w, s.now)
}
