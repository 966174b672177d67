package perplayer

import (
	"fmt"
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/fnv"
	"github.com/uplink-rpc/uplink/ringcache"
)

// Limits of [Config.Ring].
const (
	// Ring is the default and maximum number of snapshots that both ends store.
	Ring    = 64
	minRing = 16
)

// Config configures a [World] and its encoders, or a [Decoder]. Zero fields mean the defaults.
type Config struct {
	// Ring is the number of snapshots to store, 16 to [Ring]; default Ring. The Ring of a decoder
	// must not be less than that of its encoder. A baseline is at most Ring-13 snapshots old; if
	// the round-trip time (RTT) is longer, each snapshot is coded against the initial set. For
	// example, 16 suffices for 10 snapshots per second and an RTT of 300 ms, and 32 for 60
	// snapshots per second and an RTT of 310 ms.
	Ring int
	// CheckEvery is the number of snapshots per divergence check, 1 to 65,535; default 60.
	CheckEvery int
}

func (c Config) withDefaults() (Config, error) {
	if c.Ring == 0 {
		c.Ring = Ring
	}
	if c.CheckEvery == 0 {
		c.CheckEvery = 60
	}
	if c.Ring < minRing || c.Ring > Ring {
		return c, fmt.Errorf("perplayer: Ring %d, want %d to %d", c.Ring, minRing, Ring)
	}
	if c.CheckEvery < 1 || c.CheckEvery > 1<<16-1 {
		return c, fmt.Errorf("perplayer: CheckEvery %d, want 1 to 65535", c.CheckEvery)
	}
	return c, nil
}

// World stores the newest sets for the encoders of all players. Not safe for concurrent use, except
// that encoders may read it at the same time.
type World struct {
	origin
	schema *Schema
	cfg    Config
	sets   *ringcache.Ring[*Set]
	next   uint64
}

// origin is what both ends have before the first snapshot.
type origin struct {
	initial, empty         *Set
	prior                  *modelState
	initialHash, emptyHash uint16
}

func (s *Schema) newOrigin(initial *Set) origin {
	o := origin{initial: s.NewSet(), empty: s.NewSet(), prior: s.newState()}
	if initial != nil {
		o.initial.CopyFrom(initial)
	}
	o.initialHash, o.emptyHash = hash(o.initial, o.prior), hash(o.empty, o.prior)
	return o
}

// load makes the initial or the empty set the baseline and returns its hash.
func (o *origin) load(pc *payloadCodec, empty bool) uint16 {
	pc.refs.base, pc.refs.distance, pc.from = o.initial, 1, o.prior
	if empty {
		pc.refs.base = o.empty
		return o.emptyHash
	}
	return o.initialHash
}

// NewWorld returns a world that starts from initial, a set that both ends know; nil means an empty
// set.
func NewWorld(s *Schema, initial *Set) *World {
	w, err := Config{}.NewWorld(s, initial)
	if err != nil {
		panic(err) // the defaults are valid
	}
	return w
}

// NewWorld returns a world with configuration c, as the function [NewWorld] does. An error names
// the invalid setting.
func (c Config) NewWorld(s *Schema, initial *Set) (*World, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	return &World{origin: s.newOrigin(initial), schema: s, cfg: c, sets: ringcache.New[*Set](c.Ring)}, nil
}

// Begin starts the next snapshot and returns its empty set. The caller fills the set, and must not
// change it once an encoder has encoded it. If the ring is full, Begin discards the oldest set.
func (w *World) Begin() *Set {
	s := w.sets.Put(w.next)
	w.next++
	if *s == nil {
		*s = w.schema.NewSet()
	}
	(*s).Reset()
	return *s
}

func (w *World) set(n uint64) *Set { return *w.sets.Get(n) }

// MaxObjects is the maximum number of objects of a set.
const MaxObjects = 4096

// Object identifies an object of a set. If an id is reused for another object, that object must
// have another Generation.
type Object struct {
	ID         uint16
	Generation uint8
}

func (o Object) word() uint64 { return uint64(o.ID)<<8 | uint64(o.Generation) }

// Set is the objects of a world at one tick, by ascending id. [Schema.NewSet] and [World.Begin]
// return one. Not safe for concurrent use.
type Set struct {
	schema  *Schema
	objects []Object
	ids     fnv.Hash // of objects
	ints    []int32
}

// NewSet returns an empty set.
func (s *Schema) NewSet() *Set { return &Set{schema: s} }

// Reset removes all objects and keeps the memory.
func (s *Set) Reset() { s.objects, s.ids, s.ints = s.objects[:0], 0, s.ints[:0] }

// Len returns the number of objects.
func (s *Set) Len() int { return len(s.objects) }

// Object returns the identity of object i, 0 to Len-1.
func (s *Set) Object(i int) Object { return s.objects[i] }

// Row returns the components of object i. The set owns the slice.
func (s *Set) Row(i int) []int32 {
	n := s.schema.ints
	return s.ints[i*n : (i+1)*n : (i+1)*n]
}

// Index returns the index of the object with an id, and whether there is one.
func (s *Set) Index(id uint16) (int, bool) {
	return slices.BinarySearchFunc(s.objects, id, func(o Object, id uint16) int { return int(o.ID) - int(id) })
}

// Add appends a copy of an object. Its id must be higher than all others, and each component within
// the bounds of its field. After an error the set is unchanged. Add does not allocate if the set
// has capacity.
func (s *Set) Add(o Object, row []int32) error {
	switch n := len(s.objects); {
	case n >= MaxObjects:
		return fmt.Errorf("perplayer: object %d: the set has %d objects, want at most %d", o.ID, n, MaxObjects)
	case n > 0 && s.objects[n-1].ID >= o.ID:
		return fmt.Errorf("perplayer: object %d after object %d: want ascending ids", o.ID, s.objects[n-1].ID)
	case len(row) != s.schema.ints:
		return fmt.Errorf("perplayer: object %d: %d components, want %d", o.ID, len(row), s.schema.ints)
	}
	if err := s.schema.check(o.ID, row); err != nil {
		return err
	}
	s.addObject(o)
	s.ints = append(s.ints, row...)
	return nil
}

// CopyFrom makes s equal to o. Both must have the same schema.
func (s *Set) CopyFrom(o *Set) {
	s.objects, s.ids, s.ints = append(s.objects[:0], o.objects...), o.ids, append(s.ints[:0], o.ints...)
}

// Equal reports whether both sets contain the same objects with the same components.
func (s *Set) Equal(o *Set) bool {
	return slices.Equal(s.objects, o.objects) && slices.Equal(s.ints, o.ints)
}

func (s *Set) addObject(o Object) {
	s.objects = append(s.objects, o)
	s.ids = s.ids.Add(o.word())
}

// sameObjects reports whether both sets contain the same objects, by their hashes. A forged set may
// collide; both ends then make the same mistake.
func (s *Set) sameObjects(o *Set) bool { return s.ids == o.ids && len(s.objects) == len(o.objects) }

// follow returns the index of o, or -1. It moves at up to the first id that is not below that of o.
func (s *Set) follow(at *int, o Object) int32 {
	for *at < len(s.objects) && s.objects[*at].ID < o.ID {
		*at++
	}
	if *at < len(s.objects) && s.objects[*at] == o {
		return int32(*at)
	}
	return -1
}

// push appends an object without checks and returns its row, whose content is undefined.
func (s *Set) push(o Object) []int32 {
	s.addObject(o)
	n := len(s.ints)
	s.ints = slices.Grow(s.ints, s.schema.ints)[:n+s.schema.ints]
	return s.ints[n:]
}

func (s *Set) memory() int { return 4*cap(s.objects) + 4*cap(s.ints) }
