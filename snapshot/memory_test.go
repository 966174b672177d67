package snapshot_test

import (
	"testing"

	"github.com/uplink-rpc/uplink/snapshot"
)

// TestMemory keeps what both ends keep of 901 cubes at 60 snapshots a second and a round trip of 100 ms within budget.
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

// TestMemoryIsBounded has a player that acks nothing, and then all again: what was kept meanwhile is given back.
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

func TestBadConfig(t *testing.T) {
	for _, c := range []snapshot.Config{{Ring: 15}, {Ring: 65}, {Ring: -1}, {CheckEvery: -1}, {CheckEvery: 1 << 16}} {
		if _, err := c.NewWorld(testSchema(t), nil); err == nil {
			t.Errorf("%+v was taken for a world", c)
		}
		if _, err := c.NewDecoder(testSchema(t), nil); err == nil {
			t.Errorf("%+v was taken for a decoder", c)
		}
	}
}
