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

// TestDisagreementIsFound corrupts one end. The next divergence check detects it, and all snapshots
// after the reset are correct.
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

// TestDisagreementHeals adds losses, and objects that are added and removed. Corrupt objects may be
// removed before a check; after a detected desync all snapshots are correct.
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

// TestInitialSetsThatDiffer checks that no wrong snapshot is delivered: the decoder reports the
// difference, and the encoder stops using the initial set.
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

// TestNewDecoder replaces the decoder by a new one.
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

// TestResetsAreBounded requests a reset with every ack.
func TestResetsAreBounded(t *testing.T) {
	l := newLink(t, 4, 10, snapshot.Config{}, nil, nil)
	l.run(50)
	for i := range 10 * snapshot.Ring {
		l.tick()
		must(t, l.enc.Ack(snapshot.Ack{None: true, Epoch: uint8(i)}))
	}
	if n := l.enc.Resets(); n < 2 || n > 12 || l.wrong > 0 {
		t.Error(l)
	}
}
