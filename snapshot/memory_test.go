package snapshot_test

import (
	"testing"

	"github.com/uplink-rpc/uplink/snapshot"
)

// TestMemory bounds the memory of both ends for 901 cubes at 60 snapshots per second and an RTT of
// 100 ms.
func TestMemory(t *testing.T) {
	l := newLink(t, 1, 0, snapshot.Config{}, nil, nil)
	l.cubes(901)
	l.delay = 2 // to 4 ticks each way
	l.run(300)
	states, free, encoder := l.enc.Stored()
	decoderStates, sets := l.dec.Stored()
	t.Logf("encoder: %d states, %d free, %d KiB; decoder: %d states, %d sets, %d KiB; world: %d KiB",
		states, free, encoder>>10, decoderStates, sets, l.dec.Memory()>>10, l.world.Memory()>>10)
	if l.wrong > 0 || l.right < 290 {
		t.Fatal(l)
	}
	if n := encoder; n > 768<<10 {
		t.Errorf("the encoder keeps %d bytes, want at most 768 KiB a player", n)
	}
	if n := l.dec.Memory(); n > 5<<19 {
		t.Errorf("the decoder keeps %d bytes, want at most 2.5 MiB", n)
	}
	if n := l.world.Memory(); n > 4<<20 {
		t.Errorf("the world keeps %d bytes, want at most 4 MiB", n)
	}
}

// TestMemoryIsBounded stops the acks and starts them again: memory returns to its previous size.
func TestMemoryIsBounded(t *testing.T) {
	for _, ring := range []int{snapshot.MinRing, 32, snapshot.Ring} {
		l := newLink(t, 1, 10, snapshot.Config{Ring: ring}, nil, nil)
		l.delay = 1
		l.run(100)
		_, _, calm := l.enc.Stored()
		l.mute = true
		l.run(100)
		if n, _, _ := l.enc.Stored(); n > ring-12 {
			t.Errorf("ring %d: %d states are kept of a player that acks nothing", ring, n)
		}
		l.mute = false
		l.run(3 * ring)
		if _, _, n := l.enc.Stored(); n > 2*calm {
			t.Errorf("ring %d: %d bytes, before %d", ring, n, calm)
		}
		if l.wrong > 0 {
			t.Error(l)
		}
	}
}

func TestAllocations(t *testing.T) {
	sc := newScene(t, 3, 901)
	sc.churn = 1000
	world := snapshot.NewWorld(sc.schema, nil)
	enc, dec := snapshot.NewEncoder(sc.schema, world), snapshot.NewDecoder(sc.schema, nil)
	buf := make([]byte, 0, 1<<16)
	once := func() {
		sc.fill(t, world.Begin())
		out, _, err := enc.Append(buf, 1<<16)
		must(t, err)
		_, _, err = dec.Decode(out)
		must(t, err)
		must(t, enc.Ack(dec.Ack()))
		sc.step()
	}
	for range 3 * snapshot.Ring {
		once()
	}
	sc.churn = 1 << 30 // no maps grow
	if n := testing.AllocsPerRun(100, once); n != 0 {
		t.Errorf("%g allocations a snapshot", n)
	}
}
