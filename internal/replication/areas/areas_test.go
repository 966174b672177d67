package areas

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/uplinktest/corpus"
	"github.com/uplink-rpc/uplink/internal/uplinktest/entries"
	"github.com/uplink-rpc/uplink/internal/uplinktest/randomrow"
	"github.com/uplink-rpc/uplink/internal/uplinktest/sessions"
	"github.com/uplink-rpc/uplink/internal/uplinktest/steer"
)

var (
	updates = flag.Int("updates", 500_000, "number of objects that TestRandomWorld compares")
	seed    = flag.Uint64("seed", 0, "seed of the first world of TestRandomWorld, 0 for a random one")
)

// TestRandomWorld compares each object that clients are shown with what the server put, in random
// worlds: of random types, with clients that see changing areas, join and leave, behind links with
// loss and jitter, some of whom send hostile acks. A client that can know all visible objects is
// shown all.
func TestRandomWorld(t *testing.T) {
	from := *seed
	if from == 0 {
		from = rand.Uint64()
	}
	var sum tally
	worlds := uint64(0)
	for ; sum.current+sum.stale < *updates; worlds++ {
		if err := playWorld(from+worlds, &sum); err != nil {
			t.Fatalf("-seed %d: %v", from+worlds, err)
		}
	}
	t.Logf("-seed %d: %d objects in %d worlds were compared: %d up to date, %d of an older message, 0 mismatches", from, sum.current+sum.stale, worlds, sum.current, sum.stale)
	if sum.stale > sum.current/20 {
		t.Errorf("%d of %d objects were not up to date", sum.stale, sum.current+sum.stale)
	}
}

// playWorld plays a world of a seed, and adds the objects that its clients are shown.
func playWorld(seed uint64, sum *tally) error {
	r := rand.New(rand.NewPCG(seed, 4))
	testWorld := newTestWorld(seed, 6, 1+r.IntN(4), 100+r.IntN(300), r.Uint64N(1<<17))
	complete := testWorld.testClient(seed, link{every: 1})
	complete.enter = 1 << 20
	testClients := []*testClient{complete}
	for range 1 + r.IntN(20) {
		testClients = append(testClients, testWorld.randomTestClient())
	}
	absent := make([]int, len(testClients)) // snapshots until a client joins
	for n := range 300 {
		testWorld.step()
		for i, g := range testClients {
			switch {
			case absent[i] > 0:
				if absent[i]--; absent[i] == 0 {
					g.rejoin(testWorld)
				}
				continue
			case i > 0 && r.IntN(300) == 0:
				absent[i] = 1 + r.IntN(100)
				continue
			case g.sees == nil || r.IntN(60) == 0:
				g.look(testWorld)
			}
			if testWorld.newest()%g.every == 0 {
				g.send(testWorld)
			}
			if err := g.deliver(testWorld); err != nil {
				return fmt.Errorf("client %d, %+v: %w", i, g.link, err)
			}
		}
		for _, g := range testClients {
			g.saw[testWorld.newest()%uint64(len(g.saw))] = g.sees
		}
		if complete.missing > 0 {
			return fmt.Errorf("snapshot %d: %d visible objects are not shown", n, complete.missing)
		}
	}
	for _, g := range testClients {
		sum.add(&g.seen)
	}
	return nil
}

// TestUnseen checks that what a client does not see has no influence on what it receives, byte for
// byte: in a second world, objects are added, move and disappear where it does not look.
func TestUnseen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		towns := [2]*testWorld{newTestWorld(seed, 6, 2, 200, 0), newTestWorld(seed, 6, 2, 200, 0)}
		const hidden = 5_000 // an area
		rng := rand.New(rand.NewPCG(seed, 3))
		var others []*walker
		for i := range rapid.IntRange(1, 200).Draw(t, "hidden objects") {
			others = append(others, &walker{Object: randomrow.New(rng, towns[1].kinds[1].schema), id: snapshot.Object{ID: uint16(1<<15 + i)}})
		}
		l := link{every: 1, delay: rapid.Uint64Range(0, 12).Draw(t, "delay"), loss: rapid.Float64Range(0, 0.3).Draw(t, "loss")}
		testClients := [2]*testClient{towns[0].testClient(seed, l), towns[1].testClient(seed, l)}
		for n := range 75 {
			for i, testWorld := range towns {
				if i == 0 {
					testWorld.step()
				} else {
					testWorld.stepWith(others[rng.IntN(2):], func(w *walker) area.ID {
						w.Step(rng)
						return area.ID(hidden + rng.IntN(3))
					})
				}
				if n%25 == 0 {
					testClients[i].look(testWorld)
				}
				testClients[i].send(testWorld)
				if err := testClients[i].deliver(testWorld); err != nil {
					t.Fatal(err)
				}
			}
			if a, b := testClients[0].message, testClients[1].message; !bytes.Equal(a, b) {
				t.Fatalf("snapshot %d: %x and %x", n, a, b)
			}
		}
	})
}

// FuzzDecode passes messages to a decoder that has received the first messages of a golden session:
// the input has the number of these messages, and entries. What is shown is valid and bounded, and
// the same in a decoder without the rejected messages: these have no effect, and the next message
// of the session decodes after them. A decoder that has forgotten all messages requests a reset.
func FuzzDecode(f *testing.F) {
	const history = 8
	s := sessions.Read(f, "internal/replication/areas/testdata/moves.session", "take")
	begin := func(in []byte) (d *Decoder, held int) {
		d, held = NewDecoder(s.Schemas...), int(in[0])%(history+1)
		for _, m := range s.Messages[:held] {
			_, _, err := d.Decode(m)
			must(err)
		}
		return d, held
	}
	x := corpus.Target{Parser: "area", Inputs: 20_000, Check: func(t testing.TB, in []byte) {
		if len(in) == 0 {
			return
		}
		d, held := begin(in)
		other, _ := begin(in)
		check := func(m []byte) {
			if _, _, err := other.Decode(m); err != nil {
				t.Fatalf("%x: accepted, but not without rejected ones before it: %v", m, err)
			}
		}
		shown := func() {
			for typ, schema := range s.Schemas {
				shown, ages := d.Shown(typ), d.Ages(typ)
				if n := shown.Len(); n > MaxObjects || ages != nil && len(ages) != n {
					t.Fatalf("%d objects with %d ages", n, len(ages))
				}
				valid := schema.NewSet()
				for i := range shown.Len() {
					must(valid.Add(shown.Object(i), shown.Row(i)))
				}
				if !shown.Equal(other.Shown(typ)) || !slices.Equal(ages, other.Ages(typ)) {
					t.Fatal("what is shown differs without the rejected messages")
				}
			}
		}
		for m := range entries.All(in[1:]) {
			_, _, err := d.Decode(m)
			if a := d.Ack(); held > 0 && a.None && a.Epoch == 0 || err == nil && a.None {
				t.Fatalf("%v, and the ack is %+v", err, a)
			}
			if errors.Is(err, snapshot.ErrDesync) {
				return
			} else if err == nil {
				check(m)
			}
			shown()
		}
		if _, _, err := d.Decode(s.Messages[held]); err == nil {
			check(s.Messages[held])
		} else if _, _, wanted := other.Decode(s.Messages[held]); wanted == nil {
			t.Fatalf("the next message after rejected ones: %v", err)
		}
		shown()
	}, Results: func(_ testing.TB, in []byte) (line string) {
		if len(in) == 0 {
			return ""
		}
		d, _ := begin(in)
		for m := range entries.All(in[1:]) {
			var h corpus.Hash
			_, _, err := d.Decode(m)
			for typ := range s.Schemas {
				sessions.AddSet(&h, d.Shown(typ))
			}
			line += sessions.Result(err, h)
		}
		return line
	}}
	if steer.Message != nil {
		x.Inputs, x.Generate = 60_000, func(r *rand.Rand) []byte {
			in := []byte{byte(r.IntN(history + 1))}
			d, _ := begin(in)
			for range 1 + r.IntN(3) {
				w := hostileWriter{d: d, r: r}
				m := w.message()
				_, _, _ = d.Decode(m)
				in = append(in, entries.Of(m, false)...)
			}
			return in
		}
	}
	x.Run(f)
}

// FuzzAcks applies arbitrary acks of one client, each before the next snapshot. Another client is
// shown everything, and no group is encoded more often than it may be.
func FuzzAcks(f *testing.F) {
	for _, a := range []snapshot.Ack{{Newest: 9, Window: 1<<9 - 1}, {None: true, Epoch: 3}, {Newest: 12, Epoch: 200}} {
		f.Add(a.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		testWorld := newTestWorld(1, 3, 2, 60, 0)
		hostile, honest := testWorld.testClient(1, link{every: 1}), testWorld.testClient(2, link{every: 1, delay: 2})
		honest.enter = 1 << 20
		for n := range 40 {
			testWorld.step()
			for _, g := range []*testClient{hostile, honest} {
				if n%20 == 0 {
					g.look(testWorld)
				}
				g.send(testWorld)
			}
			if a, rest, err := snapshot.ParseAck(b); n > 10 && err == nil {
				_, _ = hostile.view.Ack(a) // an error is one of an ack that no client sends
				b = rest
			}
			must(honest.deliver(testWorld))
			if honest.missing > 0 {
				t.Fatalf("snapshot %d: %d objects are not shown", n, honest.missing)
			}
			for _, g := range testWorld.world.groups {
				if g.count > maxEncodings {
					t.Fatalf("snapshot %d: %d encodings", n, g.count)
				}
			}
		}
	})
}
