package snapshot_test

import (
	"errors"
	"math/bits"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/snapshot"
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
	world := snapshot.NewHistory(sc.schema, nil)
	enc := newSender(world)
	if _, err := enc.Ack(snapshot.Ack{Newest: 0}); !errors.Is(err, snapshot.ErrAck) {
		t.Errorf("before anything was sent: %v", err)
	}
	send := func(limit int) (snapshot.Info, error) {
		sc.fill(t, world.Begin())
		_, info, err := enc.send(nil, limit)
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
		if _, err := enc.Ack(a); !errors.Is(err, snapshot.ErrAck) {
			t.Errorf("%+v: %v", a, err)
		}
	}
	if info, _ := send(1000); info.Distance != 0 {
		t.Errorf("the baseline is %d before, but nothing was acked", info.Distance)
	}
	_, err := enc.Ack(snapshot.Ack{Newest: 8, Window: 0b1110_1111})
	must(t, err)
	if info, _ := send(1000); info.Distance != 3 {
		t.Errorf("the baseline is %d before, want 3", info.Distance)
	}
	for range 3 * snapshot.Ring {
		_, err := send(1000)
		must(t, err)
	}
	_, err = enc.Ack(snapshot.Ack{Newest: 8, Window: ^uint64(0) >> 56}) // an old one
	must(t, err)
	if info, _ := send(1000); info.Distance != 0 {
		t.Errorf("the baseline is %d before, after an old ack", info.Distance)
	}
}

// TestAppendErrors checks that a snapshot that is too large, or whose baseline the world does not
// have, leaves dst unchanged.
func TestAppendErrors(t *testing.T) {
	sc := newScene(t, 1, 30)
	world := snapshot.NewHistory(sc.schema, nil)
	var enc snapshot.Encoder
	if _, _, err := enc.Append(nil, world, snapshot.Baseline{}, 1000); !errors.Is(err, snapshot.ErrBaselineMissing) {
		t.Error("before the first snapshot:", err)
	}
	for range 70 {
		sc.fill(t, world.Begin())
	}
	for _, c := range []struct {
		baseline snapshot.Baseline
		limit    int
		want     error
	}{
		{snapshot.Baseline{}, 20, snapshot.ErrTooLarge},
		{snapshot.Baseline{Distance: -1}, 1000, snapshot.ErrBaselineMissing},
		{snapshot.Baseline{Distance: 64}, 1000, snapshot.ErrBaselineMissing},
		{snapshot.Baseline{Distance: 58, Step: 1}, 1000, snapshot.ErrBaselineMissing},
		{snapshot.Baseline{Distance: 1, Step: 5}, 1000, snapshot.ErrBaselineMissing},
		{snapshot.Baseline{Distance: 57, Step: 1}, 1000, nil},
		{snapshot.Baseline{Distance: 39, Step: 4}, 1000, nil},
		{snapshot.Baseline{Distance: 62}, 1000, nil},
		{snapshot.Baseline{Distance: 1}, 1000, nil},
	} {
		out, info, err := enc.Append([]byte("x"), world, c.baseline, c.limit)
		if !errors.Is(err, c.want) || err != nil && string(out) != "x" || info.Objects != 30 {
			t.Errorf("%+v: %q, %+v, %v", c, out, info, err)
		}
	}
}

// TestSteps checks that clients that receive one snapshot in one to four get references.
func TestSteps(t *testing.T) {
	for every := 1; every <= 4; every++ {
		for delay := 1; delay <= 20; delay++ {
			var r snapshot.Receipts
			var decoded uint64 // bit i: snapshot n-i
			var acks []snapshot.Ack
			for n := range uint64(200) {
				decoded <<= 1
				if n%uint64(every) == 0 {
					r.Sent(n, r.Baseline(n))
					decoded |= 1
				}
				newest := n - n%uint64(every)
				acks = append(acks, snapshot.Ack{Newest: uint16(newest), Window: decoded >> (n - newest) >> 1})
				if n >= uint64(delay) {
					_, err := r.Ack(acks[n-uint64(delay)])
					must(t, err)
				}
			}
			if b := r.Baseline(200); b.Step != every || b.Distance > delay+2*every {
				t.Errorf("one in %d, acks after %d: %+v", every, delay, b)
			}
		}
	}
}

// TestIrregular checks that a client that misses ticks at random always gets its newest baseline.
func TestIrregular(t *testing.T) {
	const delay = 12
	random := rand.New(rand.NewPCG(1, 2))
	var r snapshot.Receipts
	var sent uint64 // bit i: snapshot n-i
	for n := range uint64(2000) {
		if n >= delay && sent>>delay != 0 {
			newest := uint64(delay + bits.TrailingZeros64(sent>>delay))
			_, err := r.Ack(snapshot.Ack{Newest: uint16(n - 1 - newest), Window: sent >> newest >> 1})
			must(t, err)
			if b := r.Baseline(n); b.Distance > 0 && b.Step == 0 && b.Distance != int(newest)+1 {
				t.Fatalf("snapshot %d: the baseline is %d before it, the newest acked one %d", n, b.Distance, newest+1)
			}
		}
		sent <<= 1
		if random.IntN(2) == 0 {
			r.Sent(n, r.Baseline(n))
			sent |= 1
		}
	}
}
