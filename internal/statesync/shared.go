package statesync

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// Shared holds the data that the senders of all players share: the objects of the newest tick and
// their priorities. Its senders may be used at the same time, but not while a method of the Shared
// is called.
type Shared struct {
	plan       *plan
	prior      *modelState
	tick       int64
	any        bool // SetTick was called
	set        *snapshot.Set
	states     []worldState  // by index in set
	current    []float64     // priorities, by index in set
	objects    []objectState // by index in set
	words      []uint64      // packed rows of the objects
	priorities table[float64]
	workspaces sync.Pool
	indices    table[uint16] // index in set by object id; out of date for objects that are not in set
}

// worldState is the part of an object's state that each sender reads in each tick.
type worldState struct {
	id    uint16
	rests bool
}

// objectState is the state of an object of a world.
type objectState struct {
	snapshot.Object
	rests, zero bool // see identity
	row         []int32
	words       []uint64 // row, packed
}

// NewShared returns a world without objects. It uses Velocities and Rest of cfg, which must be
// those of the receivers. An error names the invalid setting.
func NewShared(schema *snapshot.Schema, cfg Config) (*Shared, error) {
	p, err := newPlan(schema, &cfg)
	if err != nil {
		return nil, err
	}
	return &Shared{plan: p, prior: p.newState(), set: schema.NewSet()}, nil
}

// SetTick sets the objects of a tick, which must not be before the previous one. set must have the
// world's schema and not change before the next call. It does the work that does not depend on the
// player once for all senders. An error wraps [ErrTick].
func (w *Shared) SetTick(tick int64, set *snapshot.Set) error {
	if w.any && tick < w.tick || !validTick(tick) {
		return fmt.Errorf("%w: %d after %d", ErrTick, tick, w.tick)
	}
	w.tick, w.set, w.any = tick, set, true
	words := set.Len() * w.plan.packing.Words()
	w.words = slices.Grow(w.words[:0], words)[:words]
	w.states, w.current, w.objects = w.states[:0], w.current[:0], w.objects[:0]
	for i := range set.Len() {
		o := objectState{Object: set.Object(i), row: set.Row(i), words: w.wordsOf(i)}
		o.rests, o.zero = w.plan.rests(o.row)
		w.plan.packing.Pack(o.words, o.row)
		w.objects = append(w.objects, o)
		w.states = append(w.states, worldState{o.ID, o.rests})
		w.current = append(w.current, w.priorities.get(o.ID))
		*w.indices.at(o.ID) = uint16(i)
	}
	return nil
}

// Prioritize sets the priority of an object for all players, until it is changed; default 0.
// [Sender.Prioritize] sets another one for one player. After an error nothing is changed.
func (w *Shared) Prioritize(id uint16, priority float64) error {
	if err := checkPriority(id, priority); err != nil {
		return err
	}
	*w.priorities.at(id) = priority
	if i := int(w.indices.get(id)); i < w.set.Len() && w.set.Object(i).ID == id {
		w.current[i] = priority
	}
	return nil
}

func checkPriority(id uint16, priority float64) error {
	if !(priority >= 0) || math.IsInf(priority, 1) {
		return fmt.Errorf("statesync: object %d: priority %v, want a finite number, 0 or above", id, priority)
	}
	return nil
}

func (w *Shared) wordsOf(i int) []uint64 {
	n := w.plan.packing.Words()
	return w.words[i*n : (i+1)*n : (i+1)*n]
}

// NewSender returns a sender of the world's objects to one player. It ignores Velocities and Rest
// of cfg. An error names the invalid setting.
func (w *Shared) NewSender(cfg Config) (*Sender, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	s := &Sender{world: w, cfg: cfg, next: cfg.First, start: cfg.First, epoch: cfg.Epoch}
	s.store.init(w.plan)
	s.store.final = cfg.First
	s.inputs.clear()
	s.typical = [2]int{w.plan.ints * 12 * bit, w.plan.ints * 6 * bit}
	return s, nil
}
