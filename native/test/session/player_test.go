//go:build native

package session

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

// nativePlayer is a client of the library that plays.
type nativePlayer struct {
	*native
	f *fleet

	bound     map[int]bool
	stepped   int32 // Step calls
	bought    int32 // Buy calls
	sent      int32 // messages
	unsent    int
	asked     map[uint32][]byte
	answered  int
	received  []int32 // messages of servers
	notes     []int32 // calls of servers
	handovers []event
	others    []event // but those of RPCs, worlds and messages
	silent    int
	worlds    [3]received // by number
	stale     int         // objects with areas
	problems  []string
}

// enterTicks is the number of ticks after which a view is complete: five round-trip times, since
// keyframes may be lost.
const enterTicks = 30

// received is what a client has received of a world.
type received struct {
	updates  int
	newest   time.Time
	longest  time.Duration // without an update
	server   uint64
	first    uint64 // tick of this server
	switches int    // of the server
}

// update checks an object of a world. With areas, groups may be shown that are older than the
// message.
func (g *nativePlayer) update(world, id int, tick uint64, value int32) {
	for at := tick; world == 1 && value != objectAt(id, tick) && at > 0 && at+64 > tick; at-- {
		if value == objectAt(id, at) {
			g.stale++
			return
		}
	}
	if value != objectAt(id, tick) {
		g.problems = append(g.problems, fmt.Sprintf("world %d: object %d is %d at tick %d", world, id, value, tick))
	}
}

// updated counts an update of a world.
func (g *nativePlayer) updated(world int, tick uint64) {
	w := &g.worlds[world]
	if w.updates++; w.updates > 1 {
		w.longest = max(w.longest, time.Since(w.newest))
	}
	if w.first == 0 {
		w.first = tick
	}
	if s := tick / serverTicks; s != w.server {
		w.server, w.first, w.switches = s, tick, w.switches+1
	}
	w.newest = time.Now()
}

// longest returns the longest time without an update of a world.
func (g *nativePlayer) longest() time.Duration {
	return max(g.worlds[0].longest, g.worlds[1].longest, g.worlds[2].longest)
}

func (f *fleet) join() *nativePlayer {
	f.t.Helper()
	c, err := newNative(f.network, f.servers[0].addr)
	uplinktest.Must(f.t, err)
	f.t.Cleanup(c.close)
	g := &nativePlayer{native: c, f: f, bound: map[int]bool{}, asked: map[uint32][]byte{}}
	uplinktest.Must(f.t, errors.Join(c.bind("Step", false), c.bind("Buy", true), c.handle("Note"), c.subscribe("numbers"), c.subscribe("town"), c.subscribeState("movers"), c.connect(f.token(0))))
	g.wait(2 * time.Second)
	if len(g.bound) != 2 || g.worlds[0].updates == 0 || g.worlds[1].updates == 0 || g.worlds[2].updates == 0 {
		f.t.Fatalf("%v bound, %+v", g.bound, g.worlds)
	}
	return g
}

// wait runs the client for a time.
func (g *nativePlayer) wait(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		g.run(g.take)
		for _, c := range g.states() {
			g.update(2, c.id, c.tick, c.value)
			g.updated(2, c.tick)
		}
		time.Sleep(2 * time.Millisecond)
	}
	synctest.Wait()
}

func (g *nativePlayer) take(e *event) {
	switch e.kind {
	case eventBound:
		g.bound[e.rpc] = true
	case eventMessage:
		g.received = append(g.received, int32(binary.LittleEndian.Uint32(e.data)))
	case eventServerCall:
		g.notes = append(g.notes, e.number)
	case eventAnswer:
		id := uint32(e.value)
		if e.status != 2 || !bytes.Equal(e.data, g.asked[id]) {
			g.problems = append(g.problems, fmt.Sprintf("answer %q with status %d to %q", e.data, e.status, g.asked[id]))
		}
		delete(g.asked, id)
		g.answered++
	case eventWorldUpdate:
		if e.world == 2 {
			return // states returns its updates
		}
		tick, objects := g.snapshot(e.world)
		g.updated(e.world, tick)
		missing := worldObjects - len(objects)
		if e.world == 1 {
			missing = (worldObjects+1)/2 - len(objects)
		}
		for id, v := range objects {
			if g.update(e.world, id, tick, v); e.world == 1 && id%2 != 0 {
				g.problems = append(g.problems, fmt.Sprintf("object %d is not in sight", id))
			}
		}
		// Groups enter a view by a keyframe, and by another one if that was lost.
		if missing != 0 && (e.world != 1 || tick > g.worlds[1].first+enterTicks) {
			g.problems = append(g.problems, fmt.Sprintf("world %d: %d of its objects are missing at tick %d", e.world, missing, tick))
		}
	case eventHandover:
		g.handovers = append(g.handovers, *e)
	case eventSilent:
		g.silent++
	case eventConnected, eventReconnecting, eventDisconnected, eventBindFailed:
		g.others = append(g.others, *e)
	}
}

// play plays for a tick.
func (g *nativePlayer) play() {
	if g.call(0, g.stepped) == nil {
		g.stepped++
	} else {
		g.unsent++
	}
	if g.stepped%10 == 0 {
		if g.call(1, g.bought) == nil {
			g.bought++
		}
		if g.send(uint32(g.sent)) == nil {
			g.sent++
		}
	}
	if g.stepped%40 == 0 {
		body := fmt.Append(nil, g.stepped)
		if id, err := g.request(body); err == nil {
			g.asked[id] = body
		}
	}
	g.wait(time.Second / 60)
}

// outcome returns the status of the last handover, and why it failed.
func (g *nativePlayer) outcome() (status int, reason string) {
	if len(g.handovers) == 0 {
		return -1, ""
	}
	e := g.handovers[len(g.handovers)-1]
	return e.status, reasonText(e.reason)
}

func once(t *testing.T, what string, got []int32, n int32) {
	t.Helper()
	got = slices.Sorted(slices.Values(got))
	if len(got) != int(n) {
		t.Errorf("%s: %d arrived, %d were sent", what, len(got), n)
	}
	for i, v := range got {
		if v != int32(i) {
			t.Errorf("%s: number %d at %d", what, v, i)
			return
		}
	}
}
