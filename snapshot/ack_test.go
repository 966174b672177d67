package snapshot_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/snapshot"
)

func TestAckOnTheWire(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a := snapshot.Ack{
			None: rapid.Bool().Draw(rt, "none"), NoInitial: rapid.Bool().Draw(rt, "no initial"),
			Epoch: rapid.SampledFrom([]uint8{0, 1, 255}).Draw(rt, "epoch"),
		}
		if !a.None {
			a.Newest = rapid.Uint16().Draw(rt, "newest")
			a.Window = rapid.SampledFrom([]uint64{0, ^uint64(0), rapid.Uint64().Draw(rt, "window"), ^uint64(0) - 1<<40}).Draw(rt, "of these")
		}
		b := a.Append(nil)
		if len(b) > 15 {
			rt.Fatalf("%d bytes", len(b))
		}
		got, rest, err := snapshot.ParseAck(append(b, 7))
		if got.Newest == a.Newest&(1<<10-1) { // the short form
			a.Newest = got.Newest
		}
		if err != nil || got != a || len(rest) != 1 {
			rt.Fatalf("%+v came as %+v, %v", a, got, err)
		}
		if _, _, err := snapshot.ParseAck(b[:len(b)-1]); !errors.Is(err, snapshot.ErrMalformed) {
			rt.Fatalf("cut short: %v", err)
		}
	})
	steady := snapshot.Ack{Newest: 9, Window: ^uint64(0)}
	if n := len(steady.Append(nil)); n != 2 {
		t.Errorf("%d bytes where nothing is lost", n)
	}
}

// TestImpossibleAcks checks that an ack of a snapshot that was not sent has no effect at all.
func TestImpossibleAcks(t *testing.T) {
	sc := newScene(t, 1, 3)
	world := snapshot.NewWorld(sc.schema, nil)
	enc := snapshot.NewEncoder(sc.schema, world)
	if err := enc.Ack(snapshot.Ack{Newest: 0}); !errors.Is(err, snapshot.ErrAck) {
		t.Errorf("before anything was sent: %v", err)
	}
	send := func(limit int) (snapshot.Info, error) {
		sc.fill(t, world.Begin())
		_, info, err := enc.Append(nil, limit)
		return info, err
	}
	for n := range 10 {
		limit := 1000
		if n == 3 || n == 9 {
			limit = 1 // too large: never sent
		}
		if _, err := send(limit); (err != nil) != (limit == 1) {
			t.Fatal(err)
		}
	}
	for _, a := range []snapshot.Ack{
		{Newest: 9},
		{Newest: 10},
		{Newest: 3},
		{Newest: 65535},
		{Newest: 8, Window: 1 << 4},
		{Newest: 8, Window: 1<<8 | 1},
		{Newest: 8, Window: 1<<63 | 1},
		{Newest: 2, Window: 4},
	} {
		if err := enc.Ack(a); !errors.Is(err, snapshot.ErrAck) {
			t.Errorf("%+v: %v", a, err)
		}
	}
	if info, _ := send(1000); info.Baseline != 0 {
		t.Errorf("the baseline is %d before, but nothing was acked", info.Baseline)
	}
	must(t, enc.Ack(snapshot.Ack{Newest: 8, Window: 0b1110_1111}))
	if info, _ := send(1000); info.Baseline != 3 {
		t.Errorf("the baseline is %d before, want 3", info.Baseline)
	}
	for range 3 * snapshot.Ring {
		_, err := send(1000)
		must(t, err)
	}
	must(t, enc.Ack(snapshot.Ack{Newest: 8, Window: ^uint64(0) >> 56})) // an old one
	if info, _ := send(1000); info.Baseline != 0 {
		t.Errorf("the baseline is %d before, after an old ack", info.Baseline)
	}
}

// TestAppendErrors checks that a snapshot that is too large or was sent before leaves dst
// unchanged, and that one that was not sent cannot be acked.
func TestAppendErrors(t *testing.T) {
	sc := newScene(t, 1, 30)
	world := snapshot.NewWorld(sc.schema, nil)
	enc := snapshot.NewEncoder(sc.schema, world)
	sc.fill(t, world.Begin())
	for _, c := range []struct {
		limit int
		want  error
		dst   string
	}{{20, snapshot.ErrTooLarge, "x"}, {1000, nil, ""}, {1000, snapshot.ErrSent, "x"}} {
		out, info, err := enc.Append([]byte("x"), c.limit)
		if !errors.Is(err, c.want) || c.dst != "" && string(out) != c.dst || info.Objects != 30 {
			t.Fatalf("limit %d: %q, %+v, %v", c.limit, out, info, err)
		}
		if ack := enc.Ack(snapshot.Ack{}); (ack == nil) != (c.limit == 1000) {
			t.Errorf("limit %d: ack %v", c.limit, ack)
		}
	}
}
