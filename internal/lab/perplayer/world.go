package perplayer

import (
	"github.com/uplink-rpc/uplink/internal/codec/fnv"
	"github.com/uplink-rpc/uplink/ringcache"
	"github.com/uplink-rpc/uplink/snapshot"
)

// World stores the newest sets for the encoders of all players.
type World struct {
	schema  *objectSchema
	initial *set
	prior   *modelState
	sets    *ringcache.Ring[*set]
	next    uint64
}

// ring is the number of snapshots that are stored.
const ring = 64

// NewWorld returns a world that starts from initial, a set that all clients know. An error names
// the field that is not supported: objects have orientations, numbers and integers.
func NewWorld(of *snapshot.Schema, initial *snapshot.Set) (*World, error) {
	s, err := newSchema(of)
	if err != nil {
		return nil, err
	}
	w := &World{schema: s, initial: &set{width: s.ints}, prior: s.newState(), sets: ringcache.New[*set](ring)}
	w.initial.copyFrom(initial)
	return w, nil
}

// Add adds a copy of the next snapshot.
func (w *World) Add(from *snapshot.Set) {
	s := w.sets.Put(w.next)
	w.next++
	if *s == nil {
		*s = &set{width: w.schema.ints}
	}
	(*s).copyFrom(from)
}

func (w *World) set(n uint64) *set { return *w.sets.Get(n) }

// set is the objects of a world at one tick, by ascending id.
type set struct {
	width   int // components of an object
	objects []snapshot.Object
	ids     fnv.Hash // of objects
	ints    []int32
}

func (s *set) copyFrom(o *snapshot.Set) {
	s.objects, s.ids, s.ints = s.objects[:0], 0, s.ints[:0]
	for i := range o.Len() {
		id := o.Object(i)
		s.objects = append(s.objects, id)
		s.ids = s.ids.Add(uint64(id.ID)<<8 | uint64(id.Generation))
		s.ints = append(s.ints, o.Row(i)...)
	}
}

func (s *set) len() int { return len(s.objects) }

func (s *set) row(i int) []int32 { return s.ints[i*s.width : (i+1)*s.width : (i+1)*s.width] }

// sameObjects reports whether both sets contain the same objects, by their hashes.
func (s *set) sameObjects(o *set) bool { return s.ids == o.ids && len(s.objects) == len(o.objects) }

// follow returns the index of o, or -1. It moves at up to the first id that is not below that of o.
func (s *set) follow(at *int, o snapshot.Object) int32 {
	for *at < len(s.objects) && s.objects[*at].ID < o.ID {
		*at++
	}
	if *at < len(s.objects) && s.objects[*at] == o {
		return int32(*at)
	}
	return -1
}
