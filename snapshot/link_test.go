package snapshot_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/uplink-rpc/uplink/snapshot"
)

// link is an encoder and a decoder with a link that loses, duplicates and reorders.
type link struct {
	t     testing.TB
	r     *rand.Rand
	scene *scene
	world *snapshot.World
	enc   *snapshot.Encoder
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

func newLink(t testing.TB, seed uint64, objects int, cfg snapshot.Config, initial, theirs *snapshot.Set) *link {
	sc := newScene(t, seed, objects)
	l := &link{t: t, r: rand.New(rand.NewPCG(seed, 8)), scene: sc, delay: 3, sets: map[uint16]*snapshot.Set{}, errs: map[error]int{}}
	var err error
	if l.world, err = cfg.NewWorld(sc.schema, initial); err != nil {
		t.Fatal(err)
	}
	if l.dec, err = cfg.NewDecoder(sc.schema, theirs); err != nil {
		t.Fatal(err)
	}
	l.enc = snapshot.NewEncoder(sc.schema, l.world)
	return l
}

// tick sends a snapshot and delivers what is due.
func (l *link) tick() {
	l.scene.step()
	set := l.world.Begin()
	l.scene.fill(l.t, set)
	out, info, err := l.enc.Append(nil, 1<<20)
	must(l.t, err)
	l.bytes += info.Bytes
	want := l.scene.schema.NewSet()
	want.CopyFrom(set)
	l.sets[info.Seq] = want
	for range l.copies() {
		l.down = append(l.down, flight[[]byte]{l.due(), out})
	}
	l.down = land(l.now, l.down, l.receive)
	l.up = land(l.now, l.up, func(a snapshot.Ack) {
		must(l.t, l.enc.Ack(a))
	})
	l.now++
}

// copies returns how many copies of a datagram arrive.
func (l *link) copies() int {
	switch {
	case l.r.Float64() < l.loss:
		return 0
	case l.r.IntN(20) == 0:
		return 2
	}
	return 1
}

func (l *link) due() int { return l.now + l.delay + l.r.IntN(l.delay+1) }

func land[T any](now int, sky []flight[T], to func(T)) []flight[T] {
	kept := sky[:0]
	for _, f := range sky {
		if f.at > now {
			kept = append(kept, f)
		} else {
			to(f.cargo)
		}
	}
	return kept
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

// cubes replaces the scene by n objects of which one in ten moves.
func (l *link) cubes(n int) {
	l.scene.churn = 1 << 30
	for id := range uint16(n) {
		t := l.scene.thing(0)
		if id%10 == 0 {
			t.speed = [11]int32{0, 0, 1, 0, 0, 3, -2, 1}
		}
		l.scene.objects[id] = t
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
