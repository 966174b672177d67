package statesync

import (
	"fmt"
	"math"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/snapshot"
)

// World is what the senders of all players have in common: the objects of the newest tick and their
// priorities. Its senders may be used at the same time, but not while a method of the World is
// called.
type World struct {
	plan       *plan
	prior      *modelState
	tick       int64
	any        bool // SetTick was called
	set        *snapshot.Set
	words      []uint64 // packed rows
	states     []worldState
	priorities table[float64]
	indices    table[uint16] // index in the set, by object; that of an object which is not there is out of date
}

// worldState is what all senders need to know of an object of the set.
type worldState struct {
	restState
	priority float64
}

type restState struct{ rests, zero bool }

// objectState is the state of an object of a world.
type objectState struct {
	snapshot.Object
	row   []int32
	words []uint64 // row, packed
	restState
}

// NewWorld returns a world without objects. It uses Velocities and Rest of cfg, which must be those
// of the receivers. An error names the invalid setting.
func NewWorld(schema *snapshot.Schema, cfg Config) (*World, error) {
	p, err := newPlan(schema, &cfg)
	if err != nil {
		return nil, err
	}
	return &World{plan: p, prior: p.newState(), set: schema.NewSet()}, nil
}

// SetTick sets the objects of a tick, which must not be before the previous one. set must have the
// world's schema and not change before the next call. It does what does not depend on the player,
// once for all senders. An error wraps [ErrTick].
func (w *World) SetTick(tick int64, set *snapshot.Set) error {
	if w.any && tick < w.tick || fixed.Abs(tick) > maxTick {
		return fmt.Errorf("%w: %d after %d", ErrTick, tick, w.tick)
	}
	w.tick, w.set, w.any = tick, set, true
	w.words, w.states = w.words[:0], w.states[:0]
	for i := range set.Len() {
		row, id := set.Row(i), set.Object(i).ID
		rests, zero := w.plan.rests(row)
		w.states = append(w.states, worldState{restState{rests, zero}, w.priorities.get(id)})
		*w.indices.at(id) = uint16(i)
		for range w.plan.rowWords {
			w.words = append(w.words, 0)
		}
		w.plan.pack(w.words[i*w.plan.rowWords:], row)
	}
	return nil
}

// Prioritize sets the priority of an object for all players, until it is changed; default 0.
// [Sender.Prioritize] sets another one for one player. After an error nothing is changed.
func (w *World) Prioritize(id uint16, priority float64) error {
	if err := checkPriority(id, priority); err != nil {
		return err
	}
	*w.priorities.at(id) = priority
	if i := int(w.indices.get(id)); i < w.set.Len() && w.set.Object(i).ID == id {
		w.states[i].priority = priority
	}
	return nil
}

func checkPriority(id uint16, priority float64) error {
	if !(priority >= 0) || math.IsInf(priority, 1) {
		return fmt.Errorf("statesync: object %d: priority %v, want a finite number, 0 or above", id, priority)
	}
	return nil
}

// load sets o to object i of the set.
func (w *World) load(o *objectState, i int) {
	o.Object, o.row, o.words, o.restState = w.set.Object(i), w.set.Row(i), w.wordsOf(i), w.states[i].restState
}

func (w *World) wordsOf(i int) []uint64 {
	n := w.plan.rowWords
	return w.words[i*n : (i+1)*n : (i+1)*n]
}
