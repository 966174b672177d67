package snapshot

import (
	"fmt"

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
	// Ring is the number of snapshots to store, 16 to [Ring]; default Ring. That of a decoder must
	// not be less than that of its encoder. A baseline is at most Ring-13 snapshots old; if the
	// round-trip time (RTT) is longer, each snapshot is coded against the initial set. So 16
	// suffices for 10 snapshots per second and an RTT of 300 ms, and 32 for 60 and 310 ms.
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
		return c, fmt.Errorf("snapshot: Ring %d, want %d to %d", c.Ring, minRing, Ring)
	}
	if c.CheckEvery < 1 || c.CheckEvery > 1<<16-1 {
		return c, fmt.Errorf("snapshot: CheckEvery %d, want 1 to 65535", c.CheckEvery)
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

// Begin starts the next snapshot and returns its set, which is empty, for the caller to fill before
// encoders encode it. After that it must not change. Begin discards the oldest set.
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
