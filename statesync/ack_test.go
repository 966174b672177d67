package statesync_test

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/snapshot"
	"github.com/uplink-rpc/uplink/statesync"
)

func TestAckComesBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a := statesync.Ack{None: rapid.Bool().Draw(rt, "none"), Reset: rapid.Bool().Draw(rt, "reset")}
		if !a.None {
			a.Epoch, a.Newest = rapid.Uint8().Draw(rt, "epoch"), rapid.Uint16().Draw(rt, "newest")
			a.Window = rapid.SampledFrom([]uint64{0, 1<<63 - 1, 1<<63 - 2, rapid.Uint64().Draw(rt, "window") >> 1}).Draw(rt, "one")
		}
		b := a.Append([]byte("x"))
		got, rest, err := statesync.ParseAck(append(b[1:], "rest"...))
		if err != nil || got != a || string(rest) != "rest" || len(b) > 13 {
			rt.Fatalf("%+v came as %+v, %q, %v", a, got, rest, err)
		}
	})
	whole := statesync.Ack{Newest: 9, Window: 1<<63 - 1}
	if n := len(whole.Append(nil)); n != 4 {
		t.Errorf("an ack without a gap takes %d bytes", n)
	}
}

func FuzzParseAck(f *testing.F) {
	f.Add([]byte{1})
	f.Add([]byte{1<<2 | 2, 3, 4, 5, 6})
	f.Fuzz(func(t *testing.T, b []byte) {
		a, rest, err := statesync.ParseAck(b)
		if err != nil {
			if !errors.Is(err, snapshot.ErrMalformed) {
				t.Fatal(err)
			}
			return
		}
		if again := a.Append(nil); !bytes.Equal(again, b[:len(b)-len(rest)]) {
			t.Fatalf("% x is written as % x", b, again)
		}
	})
}

// TestImpossibleAcks checks that acks of packets that were not sent are counted and have no effect.
func TestImpossibleAcks(t *testing.T) {
	w := newWorld(t, 4, 20)
	s, r := pair(t, w.schema, config)
	set := w.schema.NewSet()
	if err := s.Ack(statesync.Ack{}); !errors.Is(err, snapshot.ErrAck) {
		t.Errorf("an ack before the first packet gave %v", err)
	}
	for tick := range int64(300) {
		w.step()
		w.fill(t, set)
		out, _ := send(t, s, tick, set)
		decode(t, r, out)
		ack := r.Ack()
		_ = s.Ack(ack)
		for _, ahead := range []uint16{1, 2, 1000} {
			bad := ack
			bad.Newest += ahead
			if err := s.Ack(bad); !errors.Is(err, snapshot.ErrAck) {
				t.Fatalf("an ack of %d packets ahead gave %v", ahead, err)
			}
		}
	}
	if got := s.Stats(); got.ImpossibleAcks != 901 || got.Starts != 0 {
		t.Errorf("%+v", got)
	}
}

// TestLyingAcks sends acks of packets that were not received. Packets stay within the budget, and
// once the acks are honest, packets decode again soon: an honest ack contradicts the settled ones
// at most 8 packets later, and rejected packets request a restart.
func TestLyingAcks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, rapid.Uint64().Draw(rt, "seed"), 6)
		s, r := pair(t, w.schema, config)
		set := w.schema.NewSet()
		const honest = 2*8 + 2
		since := 0 // the last packet that was refused
		for tick := range 160 {
			w.step()
			w.fill(t, set)
			for i := range set.Len() {
				must(rt, s.Prioritize(set.Object(i).ID, 1))
			}
			out, _, err := s.Append(nil, int64(tick), set)
			if err != nil || len(out) > statesync.DefaultBudget {
				rt.Fatalf("%d bytes: %v", len(out), err)
			}
			ack := statesync.Ack{
				Reset: w.r.IntN(9) == 0, None: w.r.IntN(9) == 0, Epoch: uint8(w.r.IntN(3)) + r.Ack().Epoch,
				Newest: uint16(tick - w.r.IntN(tick+1)), Window: w.r.Uint64() >> 1,
			}
			if tick < 80 && w.r.IntN(3) == 0 { // most do not come
				_, _ = r.Decode(out)
			}
			if tick >= 80 {
				if _, err := r.Decode(out); err != nil {
					since = tick
				}
				ack = r.Ack()
			}
			_ = s.Ack(ack)
		}
		if since >= 80+honest {
			rt.Fatalf("packet %d is refused, the player is honest since 80: %+v", since, r.Stats())
		}
	})
}
