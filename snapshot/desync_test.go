package snapshot_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/snapshot"
)

var corruptions = map[string]func(*link){
	"sets":    func(l *link) { l.dec.CorruptSets() },
	"states":  func(l *link) { l.dec.CorruptStates() },
	"encoder": func(l *link) { l.enc.CorruptStates() },
}

// TestDisagreementIsFound corrupts what one end keeps: the next hash that arrives finds it, and
// from then on each snapshot that is delivered is right.
func TestDisagreementIsFound(t *testing.T) {
	for what, corrupt := range corruptions {
		l := newLink(t, 1, 20, snapshot.Config{CheckEvery: 10}, nil, nil)
		l.scene.churn = 1 << 30
		l.run(100)
		if l.wrong > 0 || l.errs[snapshot.ErrDesync] > 0 || l.right < 90 {
			t.Fatalf("before: %v", l)
		}
		corrupt(l)
		l.fresh()
		l.run(20)
		if l.errs[snapshot.ErrDesync] != 1 || l.enc.Resets() > 1 {
			t.Errorf("%s: %v", what, l)
		}
		l.fresh()
		l.run(20)
		if l.wrong > 0 || l.right < 10 || l.enc.Resets() != 1 {
			t.Errorf("%s, after: %v", what, l)
		}
		l.fresh()
		l.run(100)
		if l.wrong > 0 || l.right < 95 || l.enc.Resets() != 1 {
			t.Errorf("%s, long after: %v", what, l)
		}
	}
}

// TestDisagreementHeals does it with losses and with objects that come and go. What is corrupt can
// go out of use before a hash finds it; once one did, nothing wrong is delivered.
func TestDisagreementHeals(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := snapshot.Config{CheckEvery: rapid.SampledFrom([]int{1, 10, 60}).Draw(rt, "check"), Ring: rapid.SampledFrom([]int{24, 64}).Draw(rt, "ring")}
		l := newLink(t, rapid.Uint64().Draw(rt, "seed"), rapid.IntRange(1, 8).Draw(rt, "objects"), cfg, nil, nil)
		l.loss = rapid.SampledFrom([]float64{0, .05, .3}).Draw(rt, "loss")
		l.run(60)
		if l.wrong > 0 || l.errs[snapshot.ErrDesync] > 0 || l.right == 0 {
			rt.Fatalf("before: %v", l)
		}
		corruptions[rapid.SampledFrom([]string{"sets", "states", "encoder"}).Draw(rt, "what")](l)
		l.fresh()
		for i := 0; i < 400 && l.errs[snapshot.ErrDesync] == 0; i++ {
			l.tick()
		}
		l.fresh()
		l.run(80)
		if l.wrong > 0 || l.now-l.lastOK > 30 {
			rt.Fatalf("after: %v", l)
		}
	})
}

// TestInitialSetsThatDiffer has nothing wrong delivered: the decoder says so, and gets snapshots
// from nothing.
func TestInitialSetsThatDiffer(t *testing.T) {
	sc := newScene(t, 9, 20)
	initial, theirs := sc.schema.NewSet(), sc.schema.NewSet()
	sc.fill(t, initial)
	sc.step()
	sc.fill(t, theirs)
	for _, theirs := range []*snapshot.Set{theirs, nil} {
		l := newLink(t, 9, 20, snapshot.Config{}, initial, theirs)
		l.run(100)
		if l.wrong > 0 || l.errs[snapshot.ErrDesync] == 0 || l.right < 80 || l.enc.Resets() != 1 {
			t.Error(l)
		}
		if !l.dec.Ack().NoInitial {
			t.Error("the ack does not say so")
		}
	}
	l := newLink(t, 9, 20, snapshot.Config{}, nil, theirs) // only the decoder's: nothing refers to it
	l.run(100)
	if l.wrong > 0 || len(l.errs) > 1 || l.right < 90 || l.enc.Resets() != 0 {
		t.Error(l)
	}
}

// TestNewDecoder has another decoder take the place of the first.
func TestNewDecoder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := newLink(t, rapid.Uint64().Draw(rt, "seed"), 10, snapshot.Config{}, nil, nil)
		l.loss = rapid.SampledFrom([]float64{0, .2}).Draw(rt, "loss")
		for range 3 {
			l.run(rapid.IntRange(10, 120).Draw(rt, "ticks"))
			l.dec = snapshot.NewDecoder(l.scene.schema, nil)
			l.up = nil
			l.fresh()
			l.run(2*snapshot.Ring + 20)
			if l.wrong > 0 || l.now-l.lastOK > 30 {
				rt.Fatal(l)
			}
		}
	})
}

// TestResetsAreBounded has a player ask for a reset with every ack.
func TestResetsAreBounded(t *testing.T) {
	l := newLink(t, 4, 10, snapshot.Config{}, nil, nil)
	l.run(50)
	for i := range 10 * snapshot.Ring {
		l.tick()
		if err := l.enc.Ack(snapshot.Ack{None: true, Epoch: uint8(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if n := l.enc.Resets(); n < 2 || n > 12 || l.wrong > 0 {
		t.Error(l)
	}
}

// TestAway has the decoder hear nothing for longer than the ring, and the encoder nothing for a
// minute.
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
