package statesync_test

import (
	"runtime"
	"slices"
	"testing"

	"github.com/uplink-rpc/uplink/internal/cubes"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/statesync"
	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
)

// cube is a recorded cube as a game would declare it.
type cube struct {
	Position schema.Vec3 `uplink:"resolution=0.001953125,min=-256,max=255.99,velocity=Velocity"`
	Velocity schema.Vec3 `uplink:"resolution=0.03125,min=-64,max=64"`
	Rotation schema.Quat `uplink:"bits=10"`
}

// recorded returns the sets of a part of the recording, forward and backward.
func recorded(t testing.TB) (*snapshot.Type[cube], []*snapshot.Set) {
	q := quantizer[cube](t)
	frames, err := cubes.Load("../../testdata/traces/cubes_delta_data_2000.bin.gz")
	must(t, err)
	frames = frames[900:1000] // the player rolls through heaps of cubes
	n := len(frames)
	var sets []*snapshot.Set
	for tick := range 2*n - 2 {
		at, before := tick, max(tick-1, 0)
		if tick >= n {
			at, before = 2*n-2-tick, 2*n-1-tick
		}
		set := q.Schema().NewSet()
		for i := range frames[at] {
			is, was := frames[at][i].Meters(), frames[before][i].Meters()
			c := cube{
				Position: is, Rotation: frames[at][i].Orientation(),
				Velocity: schema.Vec3{X: speed(is.X - was.X), Y: speed(is.Y - was.Y), Z: speed(is.Z - was.Z)},
			}
			must(t, q.Add(set, snapshot.Object{ID: uint16(i)}, &c))
		}
		sets = append(sets, set)
	}
	return q, sets
}

func speed(moved float64) float64 { return min(max(moved*cubes.Rate, -64), 64) }

// cubeStream is 901 recorded cubes for one player, at 60 Hz and an RTT of 100 ms.
type cubeStream struct {
	t    testing.TB
	sets []*snapshot.Set
	s    *sender
	r    *statesync.Receiver
	buf  []byte
	tick int64
}

func newCubeStream(t testing.TB, q *snapshot.Type[cube], sets []*snapshot.Set, budget int) *cubeStream {
	c := &cubeStream{t: t, sets: sets, buf: make([]byte, 0, statesync.MaxPacket)}
	c.s, c.r = pair(t, q.Schema(), statesync.Config{Velocities: velocities(t, q), Budget: budget})
	c.s.SetViewer(0)
	return c
}

// send is one tick of the server: priorities, a packet, an ack.
func (c *cubeStream) send() []byte {
	set := c.sets[c.tick%int64(len(c.sets))]
	for i := range set.Len() {
		must(c.t, c.s.world.Prioritize(uint16(i), priority(i, set.Row(i)[3:6])))
	}
	out, _, err := c.s.Append(c.buf, c.tick, set)
	must(c.t, err)
	if newest := c.tick - 6; newest >= 0 {
		must(c.t, c.s.Ack(statesync.Ack{Newest: uint16(newest), Window: 1<<min(newest, 63) - 1}))
	}
	c.tick++
	return out
}

func (c *cubeStream) receive(packet []byte) {
	decode(c.t, c.r, packet)
}

// TestBudgetIsUsed checks that packets are full while more objects wait than fit.
func TestBudgetIsUsed(t *testing.T) {
	q, sets := recorded(t)
	for _, budget := range []int{90, 256, 486} {
		c := newCubeStream(t, q, sets, budget)
		for range 60 {
			c.send()
		}
		was := c.s.Stats()
		const n = 60 // while most cubes move
		for range n {
			c.send()
		}
		if mean := float64(c.s.Stats().Bytes-was.Bytes) / n; mean < float64(budget)*.96-4 || mean > float64(budget) {
			t.Errorf("%g bytes of %d are used", mean, budget)
		}
	}
}

// TestMemory bounds the memory of both ends for 901 objects: of a server per player, with round
// trips of 20 to 200 ms and a share of the world, then without acks, and of a client.
func TestMemory(t *testing.T) {
	q, sets := recorded(t)
	before := allocs.Heap()
	v, tick := newWorldServer(t, q), int64(0)
	run := func(ticks int) int64 {
		for range ticks {
			v.setTick(tick, sets[tick%int64(len(sets))])
			v.send(tick)
			tick++
		}
		return (allocs.Heap() - before) / players
	}
	sender := run(2 * len(sets))
	v.deaf = true
	deaf := run(statesync.Ring - 8)
	runtime.KeepAlive(v)

	c := newCubeStream(t, q, sets, budget)
	var packets [][]byte
	for range 2 * len(sets) {
		packets = append(packets, slices.Clone(c.send()))
	}
	before = allocs.Heap()
	for _, p := range packets {
		c.receive(p)
	}
	receiver := allocs.Heap() - before
	runtime.KeepAlive(packets)
	runtime.KeepAlive(c)
	t.Logf("sender %d KiB, without acks %d KiB; receiver %d KiB", sender>>10, deaf>>10, receiver>>10)
	if sender > 256<<10 || deaf > 512<<10 || receiver > 1<<20 {
		t.Error("want 256, 512 and 1024 KiB at most")
	}
}

// priority prefers the player's cube, then cubes that move.
func priority(id int, velocity []int32) float64 {
	switch {
	case id == 0:
		return 1_000_000
	case velocity[0] != 0 || velocity[1] != 0 || velocity[2] != 0:
		return 100
	}
	return 1
}

// heap returns the bytes in use.
