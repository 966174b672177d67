package snapshot_test

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
)

// TestMemory bounds the memory of both ends for 901 cubes of 11 components that all move, at 60
// snapshots per second and an RTT of 200 ms.
func TestMemory(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	s, random := snapshot.PriorSchema(), rand.New(rand.NewPCG(1, 1))
	world, dec := snapshot.NewHistory(s, nil), snapshot.NewDecoder(s, nil)
	enc := newSender(world)
	var acks []snapshot.Ack
	for n := range 200 {
		set := world.Begin()
		for id := range uint16(901) {
			row := [11]int32{3, 255, 255, 255, 7 * int32(id), 11 * int32(id), 100}
			row[5] += int32(n) + random.Int32N(3)
			must(t, set.Add(snapshot.Object{ID: id}, row[:]))
		}
		payload, _, err := enc.send(nil, 1<<16)
		must(t, err)
		_, _, err = dec.Decode(payload)
		must(t, err)
		if acks = append(acks, dec.Ack()); n >= 12 {
			_, err = enc.Ack(acks[n-12])
			must(t, err)
		}
	}
	counted, with := dec.Memory(), allocs.Heap()
	stored := dec.Stored()
	dec = nil
	bytes := with - allocs.Heap()
	t.Logf("decoder: %d KiB, %d KiB of which are in %d sets; world: %d KiB", bytes>>10, counted>>10, stored, world.Memory()>>10)
	if bytes < 100<<10 || bytes > 1<<20 {
		t.Errorf("the decoder takes %d bytes, want at most 1 MiB", bytes)
	}
	if n := world.Memory(); n > 3<<20 {
		t.Errorf("the world keeps %d bytes, want at most 3 MiB", n)
	}
	runtime.KeepAlive(enc)
}

func TestAllocations(t *testing.T) {
	sc := newScene(t, 3, 901)
	sc.churn = 1000
	world := snapshot.NewHistory(sc.schema, nil)
	enc, dec := newSender(world), snapshot.NewDecoder(sc.schema, nil)
	buf := make([]byte, 0, 1<<16)
	once := func() {
		sc.fill(t, world.Begin())
		out, _, err := enc.send(buf, 1<<16)
		must(t, err)
		_, _, err = dec.Decode(out)
		must(t, err)
		_, err = enc.Ack(dec.Ack())
		must(t, err)
		sc.step()
	}
	for range 3 * snapshot.Ring {
		once()
	}
	sc.churn = 1 << 30 // no maps grow
	if n := allocs.PerRun(100, once); n != 0 {
		t.Errorf("%g allocations a snapshot", n)
	}
}
