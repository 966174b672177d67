package areas

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// testClient is a client behind a link that loses and reorders, and what the server keeps of it.
type testClient struct {
	link
	hostile bool
	enter   int // bytes of a message for groups that enter the view
	picks   int // how often the newest baseline is chosen, against any other

	view View
	dec  *Decoder
	rng  *rand.Rand
	sees []area.ID
	sent uint64 // bit i: the message of snapshot last-i was sent
	last uint64
	mood int // kind of acks of a hostile client
	down []flight
	up   []flight
	seen tally

	observe func(message []byte, err error) // of each decoded message, or nil
	message []byte                          // the newest
	saw     [2 * snapshot.Ring][]area.ID    // what it saw in snapshots
	missing int                             // visible objects that the newest received message does not show
	shown   [2 * snapshot.Ring]shows        // by number of the message
	reset   uint64                          // the first message after the last reset
	acked   uint64                          // the newest message of which the server has an ack, or 0
}

// maxKept is how much older an acked message may be of which a view keeps all objects.
const maxKept = 56

// shows is what a message shows.
type shows struct {
	n       uint64
	objects []map[snapshot.Object]bool // by type
}

type link struct {
	every  uint64 // snapshots per message
	delay  uint64 // in one direction, in snapshots
	jitter uint64 // maximum further delay
	loss   float64
}

// tally counts the objects that a client was shown.
type tally struct{ current, stale int }

func (t *tally) add(o *tally) { t.current, t.stale = t.current+o.current, t.stale+o.stale }

type flight struct {
	at      uint64 // number of the newest snapshot at its arrival
	n       uint64
	acked   uint64 // the newest message that the server knew to be acked, or 0
	message []byte
	objects objects
	sees    []area.ID
	sizes   map[uint16]int // objects of groups by slot
	ack     snapshot.Ack
}

func (t *testWorld) testClient(seed uint64, l link) *testClient {
	return &testClient{link: l, enter: 300, picks: 10, dec: NewDecoder(t.schemas()...), rng: rand.New(rand.NewPCG(seed, 2))}
}

// randomTestClient returns a client with a random link and, perhaps, hostile acks.
func (t *testWorld) randomTestClient() *testClient {
	r := t.rng
	g := t.testClient(r.Uint64(), link{every: 1 + r.Uint64N(3), delay: r.Uint64N(16), jitter: r.Uint64N(1 + r.Uint64N(12)), loss: r.Float64() * 0.4 * float64(r.IntN(2))})
	g.enter, g.hostile, g.picks = 1<<r.IntN(12), r.IntN(3) == 0, r.IntN(20)
	return g
}

func (g *testClient) see(in ...area.ID) {
	g.sees = in
	g.view.See(in)
}

// look makes a client see the cells around a random position, and what its team knows.
func (g *testClient) look(t *testWorld) {
	at, in := walker{}, []area.ID{teams + area.ID(g.rng.IntN(3))}
	limit := int32(t.side * cell)
	at.x, at.y = g.rng.Int32N(limit), g.rng.Int32N(limit)
	for x := max(at.x-cell, 0); x <= min(at.x+cell, limit-1); x += cell {
		for y := max(at.y-cell, 0); y <= min(at.y+cell, limit-1); y += cell {
			in = append(in, t.cell(x, y))
		}
	}
	g.see(in...)
}

// rejoin makes a client leave and subscribe again.
func (g *testClient) rejoin(t *testWorld) {
	g.view.Reset()
	g.dec, g.down, g.up, g.sent, g.acked = NewDecoder(t.schemas()...), nil, nil, 0, 0
}

// send sends the newest snapshot.
func (g *testClient) send(t *testWorld) {
	n := t.newest()
	g.saw[n%uint64(len(g.saw))] = g.sees
	g.message = t.builder.Append(nil, t.world, &g.view, g.baseline(n), Limits{Enter: g.enter, Hold: int(2*(g.delay+g.jitter)) + 3})
	g.sent, g.last = g.sent<<(n-g.last)|1, n
	f := flight{n: n, acked: g.acked, message: g.message, objects: t.past[n%uint64(len(t.past))], sees: g.sees, sizes: map[uint16]int{}}
	for i, m := range g.view.members {
		if m.group != nil && m.had&1 != 0 {
			f.sizes[uint16(i)] = len(m.group.content.Objects(n))
		}
	}
	g.launch(&g.down, n, f)
}

// baseline returns a baseline that the client has: mostly the newest.
func (g *testClient) baseline(n uint64) snapshot.Baseline {
	r := &g.view.Receipts
	b := r.Baseline(n)
	step := r.Step()
	full, bare := r.Baselines(n, step)
	switch pick := g.rng.IntN(g.picks + 2); {
	case pick == 0 && full != 0:
		b = snapshot.Baseline{Distance: g.oneOf(full), Step: step}
	case pick == 1 && bare != 0:
		b = snapshot.Baseline{Distance: g.oneOf(bare)}
	}
	return b
}

// oneOf returns the index of one of the bits that are set.
func (g *testClient) oneOf(mask uint64) int {
	for range g.rng.IntN(bits.OnesCount64(mask)) {
		mask &= mask - 1
	}
	return bits.TrailingZeros64(mask)
}

func (g *testClient) launch(on *[]flight, now uint64, f flight) {
	if g.rng.Float64() >= g.loss {
		f.at = now + g.delay + g.rng.Uint64N(g.jitter+1)
		*on = append(*on, f)
	}
}

// deliver delivers what arrives now.
func (g *testClient) deliver(t *testWorld) (err error) {
	now := t.newest()
	g.down = slices.DeleteFunc(g.down, func(f flight) bool {
		if f.at > now || err != nil {
			return false
		}
		err = g.receive(t, &f)
		g.launch(&g.up, now, flight{ack: g.dec.Ack(), acked: g.dec.decoded.Newest})
		return true
	})
	g.up = slices.DeleteFunc(g.up, func(f flight) bool {
		if f.at > now {
			return false
		}
		if g.mood != silent {
			resets := g.view.Receipts.Resets()
			_, ack := g.view.Ack(f.ack)
			if g.view.Receipts.Resets() != resets { // all enters the view again
				g.acked, g.reset = 0, g.last+1
			}
			if f.acked >= g.reset {
				g.acked = max(g.acked, f.acked)
			}
			err = errors.Join(err, ack)
		}
		return true
	})
	if g.hostile && g.last == now {
		err = errors.Join(err, g.attack())
	}
	return err
}

// The kinds of hostile acks.
const (
	honest = iota
	silent // none
	liar   // of what was lost
	old
	resets
	random // also of what was never sent
	moods
)

// attack applies an ack that no honest client sends.
func (g *testClient) attack() error {
	if g.rng.IntN(30) == 0 {
		g.mood = g.rng.IntN(moods)
	}
	a := snapshot.Ack{Newest: uint16(g.last), Epoch: g.dec.Ack().Epoch}
	switch g.mood {
	case liar:
		a.Window = g.sent >> 1
	case old:
		age := g.oneOf(g.sent)
		a.Newest -= uint16(age)
	case resets:
		a.Epoch = uint8(g.rng.Uint32())
	case random:
		a.Newest, a.Window = a.Newest+uint16(g.rng.IntN(100)-50), g.rng.Uint64()
	default:
		return nil
	}
	if _, err := g.view.Ack(a); err != nil && (g.mood != random || !errors.Is(err, snapshot.ErrAck)) {
		return fmt.Errorf("ack %+v: %w", a, err)
	}
	return nil
}

// receive decodes a message and compares what it shows with what the server put.
func (g *testClient) receive(t *testWorld, f *flight) error {
	_, _, err := g.dec.Decode(f.message)
	if g.observe != nil {
		g.observe(f.message, err)
	}
	if err != nil {
		if g.hostile || errors.Is(err, snapshot.ErrLate) && g.jitter > 0 {
			return nil
		}
		return fmt.Errorf("snapshot %d: %w", f.n, err)
	}
	shown := make([]map[snapshot.Object]bool, len(t.kinds)) // whether objects are current
	for i := range shown {
		shown[i] = map[snapshot.Object]bool{}
	}
	for _, m := range g.dec.visible {
		if m.age > 0 {
			continue
		}
		if want, ok := f.sizes[m.slot]; ok && want != m.set.Len() {
			return fmt.Errorf("snapshot %d: a group of %d objects, want %d", f.n, m.set.Len(), want)
		}
		delete(f.sizes, m.slot)
		typ := slices.Index(g.dec.types, m.set.typ)
		for i := range m.set.Len() {
			shown[typ][m.set.Object(i)] = true
		}
	}
	if len(f.sizes) > 0 {
		return fmt.Errorf("snapshot %d: %d groups are not shown", f.n, len(f.sizes))
	}
	g.missing = 0
	for typ, all := range f.objects {
		set, visible := g.dec.Shown(typ), 0
		for i := range set.Len() {
			o, row := set.Object(i), set.Row(i)
			if err := t.checkAge(typ, o, row, f.n, g.dec.Ages(typ), i); err != nil && !g.hostile {
				return err
			}
			want, ok := all[o]
			switch {
			case ok && want.sees(f.sees) && slices.Equal(want.row, row):
				g.seen.current++
				visible++
			case !shown[typ][o] && t.was(typ, o, row, f.n):
				g.seen.stale++
				if ok && want.sees(f.sees) {
					visible++
				}
			default:
				return fmt.Errorf("snapshot %d: object %v of type %d is %v, want %v", f.n, o, typ, row, want)
			}
			delete(shown[typ], o)
		}
		if len(shown[typ]) > 0 {
			return fmt.Errorf("snapshot %d: %d decoded objects of type %d are not shown", f.n, len(shown[typ]), typ)
		}
		for _, p := range all {
			if p.sees(f.sees) {
				g.missing++
			}
		}
		g.missing -= visible
	}
	if g.missing > 0 && g.dec.Complete() && !g.hostile {
		return fmt.Errorf("snapshot %d: it is complete, but %d objects are missing", f.n, g.missing)
	}
	return g.keepsShowing(t, f)
}

// checkAge checks that an object was in a state in the snapshot that is its age before snapshot n.
func (t *testWorld) checkAge(typ int, o snapshot.Object, row []int32, n uint64, ages []uint64, i int) error {
	if ages == nil {
		return nil // compared with snapshot n itself
	}
	if past := t.past[(n-ages[i])%uint64(len(t.past))]; past != nil && !slices.Equal(past[typ][o].row, row) {
		return fmt.Errorf("snapshot %d: object %v of type %d is not as %d snapshots before", n, o, typ, ages[i])
	}
	return nil
}

// keepsShowing checks that a message shows the objects of the newest message that the client had
// acked when it was sent, as far as the client could see them all the time since.
func (g *testClient) keepsShowing(t *testWorld, f *flight) error {
	now := &g.shown[f.n%uint64(len(g.shown))]
	*now = shows{n: f.n}
	for typ := range t.kinds {
		shown, set := map[snapshot.Object]bool{}, g.dec.Shown(typ)
		for i := range set.Len() {
			shown[set.Object(i)] = true
		}
		now.objects = append(now.objects, shown)
	}
	before := &g.shown[f.acked%uint64(len(g.shown))]
	if f.acked == 0 || g.hostile || f.n+1 < g.dec.next || before.n != f.acked || f.n-f.acked > maxKept {
		return nil
	}
	for typ, objects := range before.objects {
		for o := range objects {
			if !now.objects[typ][o] && g.sawAllTheTime(t, typ, o, f.acked, f.n) {
				return fmt.Errorf("snapshot %d: object %v of type %d, which snapshot %d shows, vanished", f.n, o, typ, f.acked)
			}
		}
	}
	return nil
}

// sawAllTheTime reports whether an object was visible in the snapshots from one to another.
func (g *testClient) sawAllTheTime(t *testWorld, typ int, o snapshot.Object, from, to uint64) bool {
	for n := from; n <= to; n++ {
		past, sees := t.past[n%uint64(len(t.past))], g.saw[n%uint64(len(g.saw))]
		if past == nil {
			return false
		}
		if p, ok := past[typ][o]; !ok || !p.sees(sees) {
			return false
		}
	}
	return true
}
