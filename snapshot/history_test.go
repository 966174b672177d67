package snapshot_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
)

// randomWorld moves objects of a random schema.
type randomWorld struct {
	r      *rand.Rand
	schema *snapshot.Schema
	world  *snapshot.World
	rows   map[uint16][]int32
	speeds map[uint16][]int32
	ages   map[uint16]uint8 // generations
}

func drawWorld(t *rapid.T) *randomWorld {
	var fields []snapshot.Field
	for range rapid.IntRange(1, 6).Draw(t, "fields") {
		f := snapshot.Field{Name: "Field", N: 1, Class: rapid.SampledFrom([]schema.Class{
			schema.ClassNumber, schema.ClassQuat, schema.ClassAngle, schema.ClassInteger, schema.ClassBytes,
		}).Draw(t, "class")}
		f.Lo = rapid.SampledFrom([]int32{0, -1 << 31, -500, 1 << 20}).Draw(t, "lo")
		f.Hi = f.Lo + rapid.SampledFrom([]int32{2, 500, 1 << 30}).Draw(t, "range")
		switch f.Class {
		case schema.ClassQuat:
			f.N, f.Lo, f.Hi = 4, 0, rapid.SampledFrom([]int32{2, 511, 1 << 20}).Draw(t, "steps")
		case schema.ClassBytes:
			f.N, f.Lo, f.Hi = 4, 0, 9
		case schema.ClassInteger:
		default:
			f.N = rapid.IntRange(1, 3).Draw(t, "components")
		}
		fields = append(fields, f)
	}
	s, err := snapshot.NewSchema(fields...)
	must(t, err)
	w := &randomWorld{rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3)), s, nil, map[uint16][]int32{}, map[uint16][]int32{}, map[uint16]uint8{}}
	initial := s.NewSet()
	for range rapid.IntRange(0, 40).Draw(t, "objects") {
		w.add()
	}
	if rapid.Bool().Draw(t, "initial") {
		w.fill(t, initial)
	}
	w.world = snapshot.NewWorld(s, initial)
	w.world.CheckEvery(rapid.SampledFrom([]int{1, 7, 60}).Draw(t, "snapshots per check"))
	return w
}

func (w *randomWorld) add() {
	id, row := uint16(w.r.IntN(100)), make([]int32, w.schema.Components())
	w.rows[id], w.speeds[id] = row, make([]int32, len(row))
	w.ages[id]++
	at := 0
	for _, f := range w.schema.Fields() {
		for k := range f.N {
			row[at+k] = f.Lo + int32(w.r.Int64N(int64(f.Hi)-int64(f.Lo)+1))
		}
		switch f.Class {
		case schema.ClassQuat:
			row[at] = w.r.Int32N(4)
		case schema.ClassBytes:
			w.write(row[at : at+f.N])
		default:
		}
		at += f.N
	}
}

// write replaces a byte string.
func (w *randomWorld) write(c []int32) {
	clear(c)
	c[0] = w.r.Int32N(10)
	for i := range c[0] {
		c[1+i/4] |= int32(uint32(w.r.IntN(3)) << (8 * (i % 4)))
	}
}

// step moves some objects, lets others start or stop, and adds and removes a few.
func (w *randomWorld) step() {
	for _, id := range w.ids() {
		row, speed := w.rows[id], w.speeds[id]
		change := w.r.IntN(40)
		switch change {
		case 0:
			delete(w.rows, id)
			w.add()
			continue
		case 1, 2, 3:
			clear(speed)
		}
		at := 0
		for _, f := range w.schema.Fields() {
			c, v := row[at:at+f.N], speed[at:at+f.N]
			switch {
			case f.Class == schema.ClassBytes:
				if change == 4 {
					w.write(c)
				}
				at += f.N
				continue
			case f.Class == schema.ClassQuat && change == 5:
				c[0] = w.r.Int32N(4)
			}
			for k := range c {
				if change == 6 {
					v[k] = w.r.Int32N(41) - 20
				}
				if f.Class != schema.ClassQuat || k > 0 {
					c[k] = int32(min(max(int64(c[k])+int64(v[k]), int64(f.Lo)), int64(f.Hi)))
				}
			}
			at += f.N
		}
	}
}

// ids returns the ids in order, so that a seed always produces the same world.
func (w *randomWorld) ids() (ids []uint16) {
	for id := range w.rows {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func (w *randomWorld) fill(t *rapid.T, set *snapshot.Set) {
	for _, id := range w.ids() {
		must(t, set.Add(snapshot.Object{ID: id, Generation: w.ages[id]}, w.rows[id]))
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
