package worldbench

import (
	"errors"
	"fmt"

	"github.com/uplink-rpc/uplink/internal/cubes"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/uplinktest/cubeset"
)

// Scene is a world that can be played any number of times. It also determines the view of each
// player.
type Scene interface {
	// Objects returns the number of objects.
	Objects() int
	// Schema returns the schema of the objects.
	Schema() *snapshot.Schema
	// NewWorld returns a world in its initial state, which all clients know.
	NewWorld() (*replication.World, error)
	// NewReceiver returns the decoder of a client.
	NewReceiver() (*replication.SnapshotDecoder, error)
	// Put adds the objects at a tick, from 0 on, to the open set of a world.
	Put(w *replication.World, tick int) error
	// See sets the view of a player at a tick.
	See(player int, s *replication.Replica, tick int)
	// Correct reports whether a client may show these objects at a tick. The correct objects are in
	// the world's open set.
	Correct(shown, set *snapshot.Set, tick int) bool
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

// object is a cube as a game would declare it.
type object struct {
	Rotation    schema.Quat `uplink:"bits=9"`
	Position    schema.Vec3 `uplink:"resolution=0.001953125,min=-256,max=255.998046875"`
	Interacting bool
}

// recorded plays the frames of a recording forward and backward. Its objects have the recorded
// integers, because quantizing the recorded values again would add errors.
type recorded struct {
	sets    []*snapshot.Set
	frames  [][]object
	typ     *snapshot.Type[object]
	scratch []int32
}

// Recorded returns the scene of a recording of at least two frames, which all players see.
func Recorded(frames []cubes.Frame) (Scene, error) {
	if len(frames) < 2 {
		return nil, fmt.Errorf("%d frames, want at least 2", len(frames))
	}
	sets, err := cubeset.Of(frames)
	if err != nil {
		return nil, err
	}
	typ, err := snapshot.Compile[object]("world")
	if err != nil {
		return nil, err
	}
	r := recorded{sets: sets, frames: make([][]object, len(frames)), typ: typ, scratch: make([]int32, typ.Schema().Components())}
	for n := range frames {
		for i := range frames[n] {
			c := &frames[n][i]
			r.frames[n] = append(r.frames[n], object{c.Orientation(), c.Meters(), c.Interacting != 0})
		}
	}
	return r, nil
}

func (r recorded) Objects() int { return r.sets[0].Len() }

func (r recorded) Schema() *snapshot.Schema { return r.sets[0].Schema() }

func (r recorded) NewWorld() (*replication.World, error) {
	return replication.NewWorldOfSets("world", nil, r.sets[0], rate, rate)
}

func (r recorded) NewReceiver() (*replication.SnapshotDecoder, error) {
	d := replication.NewSnapshotDecoder(r.Schema(), r.sets[0])
	return &d, d.Begin(&replication.Offer{TickHz: rate, Initial: 1, Hash: replication.Hash(r.sets[0])}, nil)
}

// Put quantizes the objects, and adds them with the recorded integers.
func (r recorded) Put(w *replication.World, tick int) error {
	n := len(r.frames)
	if tick %= 2*n - 2; tick >= n {
		tick = 2*n - 2 - tick
	}
	for i := range r.frames[tick] {
		if err := r.typ.Quantize(r.scratch, &r.frames[tick][i]); err != nil {
			return err
		}
		if err := w.Put(0, snapshot.Object{ID: uint16(i)}, r.sets[tick].Row(i)); err != nil {
			return err
		}
	}
	return nil
}

// See implements [Scene].
func (recorded) See(int, *replication.Replica, int) {}

// Correct implements [Scene].
func (recorded) Correct(shown, set *snapshot.Set, _ int) bool { return shown.Equal(set) }
