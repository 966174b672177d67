package snapshot_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/snapshot"
)

// TestLoss checks that each snapshot that arrives is either late or decoded exactly, in any order,
// whatever else was lost.
func TestLoss(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed, objects := rapid.Uint64().Draw(rt, "seed"), rapid.IntRange(0, 40).Draw(rt, "objects")
		var initial *snapshot.Set
		if rapid.Bool().Draw(rt, "initial") {
			sc := newScene(t, seed, objects)
			initial = sc.schema.NewSet()
			sc.fill(t, initial)
		}
		l := newLink(t, seed, objects, snapshot.Config{}, initial, initial)
		l.loss = rapid.SampledFrom([]float64{0, .05, .5, .9}).Draw(rt, "loss")
		l.delay = rapid.SampledFrom([]int{0, 1, 5, 30, 70}).Draw(rt, "delay")
		l.run(160)
		delete(l.errs, snapshot.ErrLate)
		if l.wrong > 0 || len(l.errs) > 0 || l.loss == 0 && l.right < 20 {
			rt.Fatal(l)
		}
	})
}

// TestAway interrupts one direction for longer than the ring.
func TestAway(t *testing.T) {
	for _, away := range []int{70, 600, 3600, 33000, 65536, 65600} {
		l := newLink(t, 6, 2, snapshot.Config{}, nil, nil)
		l.run(100)
		l.deaf = true
		l.run(away)
		l.deaf = false
		l.fresh()
		l.run(40)
		if l.wrong > 0 || l.right < 30 || l.enc.Resets() > 0 {
			t.Errorf("deaf for %d: %v", away, l)
		}
	}
	l := newLink(t, 6, 2, snapshot.Config{}, nil, nil)
	l.run(100)
	l.mute = true
	l.run(3600)
	l.mute = false
	if l.wrong > 0 || l.right < 3600 {
		t.Errorf("mute: %v", l)
	}
	l.run(20)
	l.fresh()
	l.run(100)
	if bytes := l.bytes; l.wrong > 0 || l.right < 90 || l.enc.Resets() > 0 {
		t.Errorf("after: %v, %d", l, bytes)
	}
}

// TestLongRun passes the wraparounds of the header's sequence numbers.
func TestLongRun(t *testing.T) {
	sc := newScene(t, 2, 2)
	world := snapshot.NewWorld(sc.schema, nil)
	enc, dec := snapshot.NewEncoder(sc.schema, world), snapshot.NewDecoder(sc.schema, nil)
	for n := range 1<<16 + 2000 {
		sc.step()
		set := world.Begin()
		sc.fill(t, set)
		if n%2048 > 1900 { // nothing comes for a while, longer than the ring
			continue
		}
		out, _, err := enc.Append(nil, 1<<16)
		must(t, err)
		info, got, err := dec.Decode(out)
		if err != nil || info.Seq != uint16(n) || !got.Equal(set) {
			t.Fatalf("snapshot %d came as %d: %v", n, info.Seq, err)
		}
		must(t, enc.Ack(dec.Ack()))
	}
}
