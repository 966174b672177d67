package statesync_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/statesync"
)

// flying is a packet in flight and its expected updates.
type flying struct {
	packet []byte
	tick   int64
	want   []statesync.ObjectUpdate
}

func launch(t rapid.TB, out []byte, info statesync.Info, set *snapshot.Set) *flying {
	f, gone := &flying{packet: out, tick: info.Tick, want: []statesync.ObjectUpdate{}}, 0
	for _, id := range info.Objects {
		if i, ok := set.Index(id); ok {
			f.want = append(f.want, statesync.ObjectUpdate{Object: set.Object(i), Row: set.Row(i)})
		} else {
			f.want = append(f.want, statesync.ObjectUpdate{Object: snapshot.Object{ID: id}, Gone: true})
			gone++
		}
	}
	if gone != info.Gone || !slices.IsSorted(info.Objects) {
		t.Fatalf("%+v with %d gone", info, gone)
	}
	return f
}

// land compares a received update with the sent one.
func (f *flying) land(t rapid.TB, u *statesync.Update) {
	if u.Tick != f.tick || len(f.want) > 0 && !reflect.DeepEqual(u.Objects, f.want) {
		t.Fatalf("tick %d with %v, want %d with %v", u.Tick, u.Objects, f.tick, f.want)
	}
}

// TestLoss checks that each packet that arrives decodes exactly, in any order, whatever was lost.
func TestLoss(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, rapid.Uint64().Draw(rt, "seed"), rapid.IntRange(0, 64).Draw(rt, "things"))
		w.churn = rapid.SampledFrom([]int{20, 60, 1000}).Draw(rt, "churn")
		loss := rapid.SampledFrom([]float64{0, .05, .5, .97}).Draw(rt, "loss")
		cfg := config
		silent := rapid.IntRange(0, 9).Draw(rt, "no acks") == 0
		cfg.Budget = rapid.IntRange(100, 1200).Draw(rt, "budget")
		s, r := pair(t, w.schema, cfg)
		if rapid.Bool().Draw(rt, "viewer") {
			s.SetViewer(7)
		}
		var sky []*flying
		var acks []statesync.Ack
		tick := int64(-5)
		for range 200 {
			w.step()
			set := w.schema.NewSet()
			w.fill(t, set)
			for i := range set.Len() {
				must(rt, s.Prioritize(set.Object(i).ID, float64(1+i%5*w.r.IntN(10))))
			}
			tick += 1 + int64(w.r.IntN(100)/99*w.r.IntN(1<<20))
			in := statesync.Input{Player: 3, Data: []byte{byte(tick / 8), 7}}
			must(rt, s.AddInputs(tick, in))
			out, info, err := s.Append(nil, tick, set)
			must(rt, err)
			if len(out) > cfg.Budget || len(out) != info.Bytes {
				rt.Fatalf("%d bytes of %d", len(out), cfg.Budget)
			}
			if w.r.Float64() >= loss {
				sky = append(sky, launch(rt, out, info, set))
			}
			for len(sky) > 0 && w.r.IntN(4) > 0 {
				i := w.r.IntN(min(len(sky), 6))
				f := sky[i]
				if w.r.IntN(8) > 0 { // otherwise it comes again
					sky = slices.Delete(sky, i, i+1)
				}
				u, err := r.Decode(f.packet)
				switch {
				case errors.Is(err, snapshot.ErrLate), errors.Is(err, snapshot.ErrBaselineMissing) && s.Stats().Starts > 0:
				case err != nil:
					rt.Fatal(err)
				default:
					f.land(rt, u)
				}
				acks = append(acks, r.Ack())
			}
			if len(acks) > 0 && !silent && w.r.Float64() >= loss {
				b := acks[max(0, len(acks)-1-w.r.IntN(4))]
				must(rt, s.Ack(b))
			}
		}
		if st := s.Stats(); loss < .5 && !silent && st.Starts != 0 {
			rt.Fatalf("acks that come late are taken for lies: %+v", st)
		}
	})
}

// TestInputs checks that the inputs of every tick arrive once, or are missing if the sender has
// none.
func TestInputs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, rapid.Uint64().Draw(rt, "seed"), 3)
		s, r := pair(t, w.schema, config)
		set := w.schema.NewSet()
		w.fill(t, set)
		sent, got := map[int64]string{}, map[int64]bool{}
		hold := 0
		for tick := range int64(150) {
			if w.r.IntN(10) > 0 {
				var in []statesync.Input
				for p := range w.r.IntN(4) {
					in = append(in, statesync.Input{Player: uint8(p * 2), Data: bytes.Repeat([]byte{byte(w.r.IntN(3))}, w.r.IntN(4))})
				}
				must(rt, s.AddInputs(tick, in...))
				sent[tick] = fmt.Sprint(in)
			}
			out, info, err := s.Append(nil, tick, set)
			must(rt, err)
			if info.Ticks > statesync.DefaultTicks {
				rt.Fatalf("%+v", info)
			}
			if hold > 0 {
				hold--
				continue
			}
			if w.r.IntN(20) == 0 {
				hold = w.r.IntN(statesync.DefaultTicks - 4) // no packet comes for a while, fewer than repeat inputs
			}
			u := decode(rt, r, out)
			for _, in := range u.Inputs {
				want, known := sent[in.Tick]
				if got[in.Tick] || known == in.Missing || known && fmt.Sprint(in.Inputs) != want {
					rt.Fatalf("tick %d: %+v, want %v", in.Tick, in, want)
				}
				got[in.Tick] = true
			}
			for k := range sent {
				if !got[k] {
					rt.Fatalf("inputs of tick %d did not come", k)
				}
			}
			if w.r.IntN(3) > 0 {
				must(rt, s.Ack(r.Ack()))
			}
		}
	})
}
