package ds_test

import (
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/snapshot"
)

// copier is a client's copy of an arena, made of the received updates.
type copier struct {
	t     testing.TB
	typ   *snapshot.Type[mover]
	arena *arena

	mu      sync.Mutex
	newest  uint64
	objects map[uint16]client.StateObject[mover]
	ticks   map[uint16]uint64
	inputs  map[int64]bool
	missing int
	firsts  int
	updates int
}

func newCopier(t testing.TB, a *arena) *copier {
	return &copier{t: t, typ: a.typ.Clone(), arena: a, objects: map[uint16]client.StateObject[mover]{}, ticks: map[uint16]uint64{}, inputs: map[int64]bool{}}
}

// take is a StateConfig.Handle. It checks that each object equals that of the arena's tick, and
// that the inputs of each tick are received once.
func (c *copier) take(u *client.StateUpdate[mover]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if u.First {
		c.firsts++
		clear(c.objects)
		clear(c.ticks)
		clear(c.inputs)
		c.newest = 0
	}
	c.arena.mu.Lock()
	set := c.arena.ticks[u.Tick]
	c.arena.mu.Unlock()
	if set == nil || u.Late != (u.Tick < c.newest) || math.Abs(60*u.Time.Seconds()-float64(u.Tick)) > 1e-3 {
		c.t.Errorf("an update of tick %d at %v, late: %v after %d", u.Tick, u.Time, u.Late, c.newest)
		return
	}
	c.newest = max(c.newest, u.Tick)
	row := make([]int32, c.typ.Schema().Components())
	for i := range u.Objects {
		o := &u.Objects[i]
		c.updates++
		at, ok := set.Index(o.ID)
		if ok == o.Gone {
			c.t.Errorf("tick %d: object %d is gone: %v, in the world: %v", u.Tick, o.ID, o.Gone, ok)
			return
		}
		if ok {
			uplinktest.Must(c.t, c.typ.Quantize(row, &o.State))
			if want := set.Row(at); !slices.Equal(row, want) || set.Object(at).Generation != o.Generation {
				c.t.Errorf("tick %d: object %d is %v, want %v", u.Tick, o.ID, row, want)
			}
		}
		if c.ticks[o.ID] > u.Tick {
			continue
		}
		if c.ticks[o.ID] = u.Tick; o.Gone {
			delete(c.objects, o.ID)
		} else {
			c.objects[o.ID] = *o
		}
	}
	for _, in := range u.Inputs {
		if c.inputs[in.Tick] {
			c.t.Errorf("inputs of tick %d came twice", in.Tick)
		}
		c.inputs[in.Tick] = true
		if in.Missing {
			c.missing++
		} else if len(in.Inputs) != 1 || in.Inputs[0].Player != 3 || string(in.Inputs[0].Data) != string(inputAt(uint64(in.Tick))) {
			c.t.Errorf("inputs of tick %d are %+v", in.Tick, in.Inputs)
		}
	}
}

// whole checks that the client has all objects of a tick, at which all are at rest.
func (c *copier) whole(tick uint64) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.arena.mu.Lock()
	set := c.arena.ticks[tick]
	c.arena.mu.Unlock()
	if len(c.objects) != set.Len() {
		c.t.Errorf("the client has %d objects, the server %d", len(c.objects), set.Len())
	}
	row := make([]int32, c.typ.Schema().Components())
	for i := range set.Len() {
		o := c.objects[set.Object(i).ID]
		uplinktest.Must(c.t, c.typ.Quantize(row, &o.State))
		if !slices.Equal(row, set.Row(i)) {
			c.t.Errorf("object %d rests at %v, want %v", o.ID, row, set.Row(i))
		}
	}
}
