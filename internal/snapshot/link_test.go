package snapshot_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// link is an encoder and a decoder with a link that loses, duplicates and reorders.
type link struct {
	t     testing.TB
	r     *rand.Rand
	scene *scene
	world *snapshot.History
	enc   *sender
	dec   *snapshot.Decoder
	loss  float64
	delay int // ticks in one direction; up to as many more at random
	deaf  bool
	mute  bool

	now    int
	sets   map[uint16]*snapshot.Set
	down   []flight[[]byte]
	up     []flight[snapshot.Ack]
	errs   map[error]int
	right  int
	wrong  int
	bytes  int
	lastOK int // tick of the last correct snapshot

	newest     uint16        // sequence number of the newest decoded snapshot
	kept, want *snapshot.Set // the set of the last Decode, if that was the newest, and its content
}

type flight[T any] struct {
	at    int
	cargo T
}

func newLink(t testing.TB, seed uint64, objects int, initial, theirs *snapshot.Set) *link {
	sc := newScene(t, seed, objects)
	l := &link{t: t, r: rand.New(rand.NewPCG(seed, 8)), scene: sc, delay: 3, sets: map[uint16]*snapshot.Set{}, errs: map[error]int{}}
	l.world, l.dec = snapshot.NewHistory(sc.schema, initial), snapshot.NewDecoder(sc.schema, theirs)
	l.enc = newSender(l.world)
	return l
}

// tick sends a snapshot and delivers what is due.
func (l *link) tick() {
	l.scene.step()
	set := l.world.Begin()
	l.scene.fill(l.t, set)
	out, info, err := l.enc.send(nil, 1<<20)
	must(l.t, err)
	l.bytes += info.Bytes
	l.sets[info.Seq] = l.scene.schema.NewSet()
	l.sets[info.Seq].CopyFrom(set)
	if l.r.Float64() >= l.loss {
		l.down = append(l.down, flight[[]byte]{l.due(), out})
		if l.r.IntN(20) == 0 { // twice
			l.down = append(l.down, flight[[]byte]{l.due(), out})
		}
	}
	l.down = land(l.now, l.down, l.receive)
	l.up = land(l.now, l.up, func(a snapshot.Ack) {
		_, err := l.enc.Ack(a)
		must(l.t, err)
	})
	l.now++
}

func (l *link) due() int { return l.now + l.delay + l.r.IntN(l.delay+1) }

func land[T any](now int, sky []flight[T], to func(T)) []flight[T] {
	return slices.DeleteFunc(sky, func(f flight[T]) bool {
		if f.at <= now {
			to(f.cargo)
		}
		return f.at <= now
	})
}

func (l *link) receive(payload []byte) {
	if l.deaf {
		return
	}
	info, set, err := l.dec.Decode(payload)
	if l.kept != nil && !l.kept.Equal(l.want) { // it is valid until this Decode returns
		l.wrong++
	}
	l.kept = nil
	if err == nil && (l.want == nil || int16(info.Seq-l.newest) > 0) {
		l.newest, l.kept, l.want = info.Seq, set, l.sets[info.Seq]
	}
	switch {
	case err != nil:
		for _, reason := range []error{snapshot.ErrLate, snapshot.ErrDesync, snapshot.ErrBaselineMissing, snapshot.ErrMalformed} {
			if errors.Is(err, reason) {
				l.errs[reason]++
			}
		}
	case set.Equal(l.sets[info.Seq]):
		l.right, l.lastOK = l.right+1, l.now
	default:
		l.wrong++
	}
	if !l.mute && l.r.Float64() >= l.loss {
		l.up = append(l.up, flight[snapshot.Ack]{l.due(), l.dec.Ack()})
	}
}

func (l *link) run(ticks int) {
	for range ticks {
		l.tick()
	}
}

// fresh resets the counters.
func (l *link) fresh() { l.right, l.wrong, l.bytes, l.errs = 0, 0, 0, map[error]int{} }

func (l *link) String() string {
	return fmt.Sprintf("tick %d: %d right, %d wrong, %d bytes, %v, %d resets", l.now, l.right, l.wrong, l.bytes, l.errs, l.enc.Resets())
}

// TestDisagreement corrupts the decoder's sets. Without losses and removed objects, the next
// divergence check detects that; otherwise corrupt objects may be removed before. After a detected
// desync all snapshots are correct.
func TestDisagreement(t *testing.T) {
	l := newLink(t, 1, 20, nil, nil)
	l.scene.churn = 1 << 30
	if l.disagree(t); l.now > 60+80+80 || l.right < 60 || l.enc.Resets() != 1 {
		t.Error(l)
	}
	rapid.Check(t, func(rt *rapid.T) {
		l := newLink(t, rapid.Uint64().Draw(rt, "seed"), rapid.IntRange(1, 8).Draw(rt, "objects"), nil, nil)
		l.loss = rapid.SampledFrom([]float64{0, .05, .3}).Draw(rt, "loss")
		l.disagree(rt)
	})
}

func (l *link) disagree(t interface{ Fatalf(string, ...any) }) {
	l.run(60)
	if l.wrong > 0 || l.errs[snapshot.ErrDesync] > 0 || l.right == 0 {
		t.Fatalf("before: %v", l)
	}
	l.dec.CorruptSets()
	for i := 0; i < 400 && l.errs[snapshot.ErrDesync] == 0; i++ {
		l.tick()
	}
	l.fresh()
	l.run(80)
	if l.wrong > 0 || l.now-l.lastOK > 30 {
		t.Fatalf("after: %v", l)
	}
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
		l := newLink(t, 9, 20, initial, theirs)
		l.run(100)
		if l.wrong > 0 || l.errs[snapshot.ErrDesync] == 0 || l.right < 80 || l.enc.Resets() != 1 {
			t.Error(l)
		}
		if !l.dec.Ack().NoInitial {
			t.Error("the ack does not say so")
		}
	}
	l := newLink(t, 9, 20, nil, theirs) // only the decoder's: nothing refers to it
	l.run(100)
	if l.wrong > 0 || len(l.errs) > 1 || l.right < 90 || l.enc.Resets() != 0 {
		t.Error(l)
	}
}

// TestNewDecoder replaces the decoder by a new one.
func TestNewDecoder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := newLink(t, rapid.Uint64().Draw(rt, "seed"), 10, nil, nil)
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
	l := newLink(t, 4, 10, nil, nil)
	l.run(50)
	for i := range 10 * snapshot.Ring {
		l.tick()
		_, err := l.enc.Ack(snapshot.Ack{None: true, Epoch: uint8(i)})
		must(t, err)
	}
	if n := l.enc.Resets(); n < 2 || n > 12 || l.wrong > 0 {
		t.Error(l)
	}
}

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
		l := newLink(t, seed, objects, initial, initial)
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
		l := newLink(t, 6, 2, nil, nil)
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
	l := newLink(t, 6, 2, nil, nil)
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

// TestLongRun passes the wraparounds of the header's sequence numbers, with interruptions that are
// longer than the ring.
func TestLongRun(t *testing.T) {
	l := newLink(t, 2, 2, nil, nil)
	for n := 0; l.now < 1<<16+2000; n++ {
		l.deaf = n%2 > 0
		l.fresh()
		l.run([...]int{1900, 148}[n%2])
		if l.wrong > 0 || !l.deaf && l.right < 1800 {
			t.Fatal(l)
		}
	}
}

// must fails the test if err is not nil.
func must(t interface {
	Helper()
	Fatal(args ...any)
}, err error,
) {
	if err != nil { // Helper is slow, and benchmarks call must
		t.Helper()
		t.Fatal(err)
	}
}
