package snapshot_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/uplinktest/randomrow"
)

// randomWorld is objects of a random schema.
type randomWorld struct {
	r       *rand.Rand
	schema  *snapshot.Schema
	world   *snapshot.History
	objects map[uint16]*randomrow.Object
	ages    map[uint16]uint8 // generations
}

func drawWorld(t *rapid.T) *randomWorld {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
	w := &randomWorld{r, randomrow.Schema(r), nil, map[uint16]*randomrow.Object{}, map[uint16]uint8{}}
	initial := w.schema.NewSet()
	for range rapid.IntRange(0, 40).Draw(t, "objects") {
		w.add()
	}
	if rapid.Bool().Draw(t, "initial") {
		w.fill(t, initial)
	}
	w.world = snapshot.NewHistory(w.schema, initial)
	w.world.CheckEvery(rapid.SampledFrom([]int{1, 7, 60}).Draw(t, "snapshots per check"))
	return w
}

func (w *randomWorld) add() {
	id := uint16(w.r.IntN(100))
	w.objects[id] = randomrow.New(w.r, w.schema)
	w.ages[id]++
}

// step moves the objects, and replaces a few.
func (w *randomWorld) step() {
	for _, id := range w.ids() {
		if w.r.IntN(40) == 0 {
			delete(w.objects, id)
			w.add()
			continue
		}
		w.objects[id].Step(w.r)
	}
}

// ids returns the ids in order, so that a seed always produces the same world.
func (w *randomWorld) ids() (ids []uint16) {
	for id := range w.objects {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func (w *randomWorld) fill(t *rapid.T, set *snapshot.Set) {
	for _, id := range w.ids() {
		must(t, set.Add(snapshot.Object{ID: id, Generation: w.ages[id]}, w.objects[id].Row))
	}
}

// follower is a client of a world, behind a link that loses and reorders.
type follower struct {
	dec      *snapshot.Decoder
	receipts snapshot.Receipts
	joins    int
	every    int // ticks per snapshot
	loss     float64
	delay    int
	down     []flight[delivery]
	up       []flight[snapshot.Ack]
	right    int
}

type delivery struct {
	number  uint64
	payload []byte
}

// TestHistories checks that clients that reached a baseline along different histories, with losses,
// other orders and late joins, decode the same payload to the same set.
func TestHistories(t *testing.T) {
	shared, decoded := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		w := drawWorld(rt)
		var enc snapshot.Encoder
		followers := make([]*follower, rapid.IntRange(2, 5).Draw(rt, "clients"))
		for i := range followers {
			followers[i] = &follower{
				joins: rapid.SampledFrom([]int{0, 30, 100}).Draw(rt, "joins"),
				every: rapid.SampledFrom([]int{1, 1, 2, 3, 5}).Draw(rt, "ticks per snapshot"),
				loss:  rapid.SampledFrom([]float64{0, .02, .3}).Draw(rt, "loss"),
				delay: rapid.SampledFrom([]int{0, 2, 6, 15}).Draw(rt, "delay"),
			}
		}
		sets := map[uint64]*snapshot.Set{}
		hashes := map[uint64]uint16{}
		for now := range 220 {
			w.step()
			set := w.world.Begin()
			w.fill(rt, set)
			n := uint64(now)
			sets[n], hashes[n] = w.schema.NewSet(), set.Hash()
			sets[n].CopyFrom(set)
			payloads := map[snapshot.Baseline][]byte{}
			for _, f := range followers {
				switch {
				case now < f.joins || (now-f.joins)%f.every != 0:
					continue
				case f.dec == nil:
					f.dec = snapshot.NewDecoder(w.schema, w.world.Initial())
				}
				b := f.choose(n, payloads)
				if payloads[b] == nil {
					out, _, err := enc.Append(nil, w.world, b, 1<<20)
					must(rt, err)
					payloads[b] = out
				} else {
					shared++
				}
				f.receipts.Sent(n, b)
				if w.r.Float64() >= f.loss {
					f.down = append(f.down, flight[delivery]{now + f.delay + w.r.IntN(f.delay+1), delivery{n, payloads[b]}})
				}
			}
			for i, f := range followers {
				f.down = land(now, f.down, func(d delivery) {
					_, got, err := f.dec.Decode(d.payload)
					switch {
					case errors.Is(err, snapshot.ErrLate):
					case err != nil:
						rt.Fatalf("client %d: snapshot %d: %v", i, d.number, err)
					case !got.Equal(sets[d.number]) || got.Hash() != hashes[d.number]:
						rt.Fatalf("client %d decodes snapshot %d to another set", i, d.number)
					default:
						f.right++
						decoded += got.Len()
					}
					if w.r.Float64() >= f.loss {
						f.up = append(f.up, flight[snapshot.Ack]{now + f.delay + w.r.IntN(f.delay+1), f.dec.Ack()})
					}
				})
				f.up = land(now, f.up, func(a snapshot.Ack) {
					_, err := f.receipts.Ack(a)
					must(rt, err)
				})
			}
		}
		for i, f := range followers {
			if sent := (220 - f.joins) / f.every; f.right < sent/4 {
				rt.Fatalf("client %d decodes %d of %d snapshots", i, f.right, sent)
			}
		}
	})
	t.Logf("%d objects decoded, %d payloads shared", decoded, shared)
	if shared < 100 {
		t.Errorf("only %d payloads were shared", shared)
	}
}

// choose returns the baseline of a payload that others get too, if the client has it.
func (f *follower) choose(n uint64, payloads map[snapshot.Baseline][]byte) snapshot.Baseline {
	step := f.receipts.Step()
	full, bare := f.receipts.Baselines(n, step)
	best := snapshot.Baseline{Distance: snapshot.Ring}
	for b := range payloads {
		has := b.Step == step && full>>b.Distance&1 != 0 || b.Step == 0 && b.Distance > 0 && bare>>b.Distance&1 != 0
		if has && (b.Distance < best.Distance || b.Distance == best.Distance && b.Step > best.Step) {
			best = b
		}
	}
	if best.Distance == snapshot.Ring {
		return f.receipts.Baseline(n)
	}
	return best
}
