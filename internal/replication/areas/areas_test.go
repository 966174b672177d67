package areas

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
)

// town is a world of random walkers in a grid of areas.
type town struct {
	world   *World
	types   []*Type
	schemas []*snapshot.Schema
	rng     *rand.Rand
	side    int
	walkers [2][]*walker // by type, in ascending order of ids
	builder Builder
}

type walker struct {
	object snapshot.Object
	x, y   int32
	vx, vy int32
	team   area.ID
}

const cell = 1000

func newTown(seed uint64, side, objects int) *town {
	t := &town{world: NewWorld(), rng: rand.New(rand.NewPCG(seed, 1)), side: side}
	for i := range 2 {
		s, err := snapshot.NewSchema(
			snapshot.Field{Name: "P", Class: schema.ClassNumber, N: 2, Lo: -1 << 20, Hi: 1 << 20},
			snapshot.Field{Name: "Hp", Class: schema.ClassInteger, N: 1, Hi: 100},
		)
		if err != nil {
			panic(err)
		}
		t.schemas = append(t.schemas, s)
		t.types = append(t.types, t.world.AddType(s))
		for id := range objects {
			if t.rng.IntN(2) == i {
				t.walkers[i] = append(t.walkers[i], t.spawn(uint16(id), 0))
			}
		}
	}
	return t
}

func (t *town) spawn(id uint16, generation uint8) *walker {
	limit := int32(t.side * cell)
	return &walker{
		object: snapshot.Object{ID: id, Generation: generation}, x: t.rng.Int32N(limit), y: t.rng.Int32N(limit),
		team: area.ID(1_000_000 + t.rng.IntN(3)),
	}
}

func (w *walker) areas(t *town) []area.ID {
	in := []area.ID{area.ID(1 + int(w.x/cell) + t.side*int(w.y/cell))}
	if w.object.ID%7 == 0 {
		in = append(in, w.team)
	}
	if w.object.ID == 50 {
		return nil
	}
	return in
}

func (w *walker) row() []int32 { return []int32{w.x, w.y, int32(w.object.ID) % 100} }

func (t *town) step() { t.stepWith(nil, nil) }

// stepWith moves the walkers. Others are put into areas of their own.
func (t *town) stepWith(others []*walker, where func(*walker) area.ID) {
	limit := int32(t.side*cell - 1)
	t.world.Begin()
	for i := range t.walkers {
		for k, w := range t.walkers[i] {
			switch t.rng.IntN(60) {
			case 0:
				w.vx, w.vy = t.rng.Int32N(81)-40, t.rng.Int32N(81)-40
			case 1:
				w.vx, w.vy = 0, 0
			case 2:
				if t.rng.IntN(20) == 0 {
					t.walkers[i][k] = t.spawn(w.object.ID, w.object.Generation+1)
					continue
				}
			}
			w.x, w.y = min(max(w.x+w.vx, 0), limit), min(max(w.y+w.vy, 0), limit)
		}
		for _, w := range t.walkers[i] {
			if err := t.world.Put(t.types[i], w.object, w.row(), w.areas(t)...); err != nil {
				panic(err)
			}
		}
	}
	for _, w := range others {
		w.object.ID |= 1 << 15
		if err := t.world.Put(t.types[1], w.object, w.row(), where(w)); err != nil {
			panic(err)
		}
	}
	t.world.Commit()
}

// guest is a client.
type guest struct {
	view    View
	dec     *Decoder
	sees    []area.ID
	flights []flight
	delay   uint64
	loss    float64
	rng     *rand.Rand
	shown   uint64
	last    []byte // message
}

type flight struct {
	at      uint64
	message []byte
	ack     *snapshot.Ack
	sees    []area.ID
	rows    [2]map[snapshot.Object][]int32
}

func (t *town) guest(seed uint64, delay uint64, loss float64) *guest {
	return &guest{dec: NewDecoder(t.schemas...), delay: delay, loss: loss, rng: rand.New(rand.NewPCG(seed, 2))}
}

func (g *guest) see(in ...area.ID) {
	g.sees = in
	g.view.See(in)
}

// visible returns the objects that a client sees.
func (t *town) visible(in []area.ID) (rows [2]map[snapshot.Object][]int32) {
	for i := range rows {
		rows[i] = map[snapshot.Object][]int32{}
		for _, w := range t.walkers[i] {
			of := w.areas(t)
			if of == nil || slices.ContainsFunc(of, func(a area.ID) bool { return slices.Contains(in, a) }) {
				rows[i][w.object] = w.row()
			}
		}
	}
	return rows
}

// send sends the newest snapshot, and delivers what arrives now.
func (t *town) send(g *guest, n uint64) error {
	b := snapshot.Baseline{}
	if full, bare := g.view.Receipts.Baselines(n, 1); full != 0 {
		b = g.view.Receipts.Baseline(n)
	} else if bare != 0 {
		b = g.view.Receipts.Baseline(n)
	}
	message := t.builder.Append(nil, t.world, &g.view, b, Limits{Enter: 300, Hold: int(2*g.delay) + 3})
	g.last = message
	if g.rng.Float64() >= g.loss {
		g.flights = append(g.flights, flight{at: n + g.delay, message: message, sees: g.sees, rows: t.visible(g.sees)})
	}
	for len(g.flights) > 0 && g.flights[0].at <= n {
		f := g.flights[0]
		g.flights = g.flights[1:]
		if f.ack != nil {
			if _, err := g.view.Ack(*f.ack); err != nil {
				return err
			}
			continue
		}
		if err := g.receive(&f); err != nil {
			return err
		}
		a := g.dec.Ack()
		if g.rng.Float64() >= g.loss {
			g.flights = append(g.flights, flight{at: n + g.delay, ack: &a})
		}
	}
	return nil
}

func (g *guest) receive(f *flight) error {
	if _, _, err := g.dec.Decode(f.message); err != nil {
		return err
	}
	for _, m := range g.dec.visible {
		if m.stale {
			continue
		}
		typ := slices.Index(g.dec.types, m.set.typ)
		for i := range m.set.Len() {
			g.shown++
			want, ok := f.rows[typ][m.set.Object(i)]
			if !ok || !slices.Equal(want, m.set.Row(i)) {
				return fmt.Errorf("snapshot %d: object %v of type %d is %v, want %v", g.dec.n, m.set.Object(i), typ, m.set.Row(i), want)
			}
		}
	}
	return nil
}

// missing returns the number of visible objects that the newest message does not show.
func (g *guest) missing(t *town) (n int) {
	for typ, rows := range t.visible(g.sees) {
		shown := g.dec.Shown(typ)
		for o := range rows {
			if i, ok := shown.Index(o.ID); !ok || shown.Object(i) != o {
				n++
			}
		}
	}
	return n
}

// TestTown checks, on random worlds, views and losses, that clients see exactly the objects that
// they should, and that a client that can know all of them does.
func TestTown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		town := newTown(seed, 6, rapid.IntRange(100, 400).Draw(t, "objects"))
		guests := []*guest{town.guest(seed, 0, 0)}
		for range rapid.IntRange(1, 10).Draw(t, "clients") {
			guests = append(guests, town.guest(rapid.Uint64().Draw(t, "seed"), rapid.Uint64Range(0, 15).Draw(t, "delay"), rapid.Float64Range(0, 0.4).Draw(t, "loss")))
		}
		const period = 60
		for n := range uint64(300) {
			town.step()
			for i, g := range guests {
				if n%period == uint64(3*i) {
					g.see(area.ID(1+town.rng.IntN(36)), area.ID(1+town.rng.IntN(36)), area.ID(1_000_000+i%3))
				}
				if err := town.send(g, n); err != nil {
					t.Fatalf("client %d: %v", i, err)
				}
			}
			if missing := guests[0].missing(town); n%period > period/2 && missing > 0 {
				t.Fatalf("snapshot %d: %d visible objects are not shown", n, missing)
			}
		}
		for i, g := range guests {
			if g.shown == 0 && g.loss < 0.2 {
				t.Errorf("client %d with delay %d and loss %.2f saw nothing", i, g.delay, g.loss)
			}
		}
	})
}

// TestUnseen checks that what a client does not see has no influence on what it receives, byte for
// byte: in a second world, objects are added, move and disappear where it does not look.
func TestUnseen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		towns := [2]*town{newTown(seed, 6, 200), newTown(seed, 6, 200)}
		const hidden = 5_000 // an area
		others := newTown(seed+1, 6, rapid.IntRange(1, 600).Draw(t, "hidden objects"))
		delay, loss := rapid.Uint64Range(0, 12).Draw(t, "delay"), rapid.Float64Range(0, 0.3).Draw(t, "loss")
		guests := [2]*guest{towns[0].guest(seed, delay, loss), towns[1].guest(seed, delay, loss)}
		hiddenRng := rand.New(rand.NewPCG(seed, 3))
		for n := range uint64(150) {
			for i, town := range towns {
				extra := []*walker(nil)
				if i == 1 {
					extra = others.walkers[0]
				}
				town.stepWith(extra, func(w *walker) area.ID { return area.ID(hidden + hiddenRng.IntN(3)) })
				if n%50 == 0 {
					guests[i].see(area.ID(1+n/50), area.ID(7+n/50), 1_000_001)
				}
				if err := town.send(guests[i], n); err != nil {
					t.Fatal(err)
				}
			}
			if a, b := guests[0].last, guests[1].last; !bytes.Equal(a, b) {
				t.Fatalf("snapshot %d: %x and %x", n, a, b)
			}
		}
	})
}

// FuzzDecode checks that no input harms a decoder: its work and its memory are bounded, and it does
// not panic.
func FuzzDecode(f *testing.F) {
	town := newTown(1, 3, 60)
	g := town.guest(1, 2, 0)
	g.see(1, 2, 3, 4, 5, 6, 7, 8, 9)
	var history [][]byte
	for n := range uint64(12) {
		town.step()
		if err := town.send(g, n); err != nil {
			f.Fatal(err)
		}
		history = append(history, g.last)
		f.Add(g.last)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d := NewDecoder(town.schemas...)
		for _, m := range history {
			if _, _, err := d.Decode(m); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			_, _, _ = d.Decode(b)
			for typ := range d.types {
				if n := d.Shown(typ).Len(); n > MaxObjects {
					t.Fatalf("%d objects", n)
				}
			}
		}
		if a := d.Ack(); a.None && a.Epoch == 0 {
			t.Fatal("all messages are forgotten, and no reset is requested")
		}
	})
}
