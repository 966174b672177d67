package rpcdelta

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/uplink-rpc/uplink/internal/schema"
)

// batchSchema returns a schema with fields of each urgency.
func batchSchema(t *testing.T) *schema.Schema {
	no := false
	return mustSchema(t,
		schema.Field{Name: "Position", Kind: schema.KindVec3, Resolution: 0.01},
		schema.Field{Name: "Buttons", Kind: schema.KindBits, Width: 8},
		schema.Field{Name: "Weapon", Kind: schema.KindUint, Width: 8},
		schema.Field{Name: "Tick", Kind: schema.KindUint, Width: 32},
		schema.Field{Name: "Steer", Kind: schema.KindUint, Width: 8, Urgent: &no},
	)
}

// batchFrame sets f to frame n of a walk in which nothing is urgent.
func batchFrame(t *testing.T, s *schema.Schema, f *schema.Frame, n int, rng *rand.Rand) {
	a := float64(n) / 20
	noise := func() float64 { return rng.Float64() * 0.2 }
	must(t, s.QuantizeField(f, 0, []float64{100*math.Cos(a) + noise(), 100*math.Sin(a) + noise(), a + noise()}))
	must(t, s.SetUint(f, 1, 0, 1))
	must(t, s.SetUint(f, 2, 0, 7))
	must(t, s.SetUint(f, 3, 0, uint64(1000+n)))
	must(t, s.SetUint(f, 4, 0, uint64(128+100*math.Sin(3*a))))
}

// TestDue verifies which frames wait: of a walk that the model can predict all that may, and none
// in which a button or an unexpected weapon changes, or the position jumps.
func TestDue(t *testing.T) {
	s := batchSchema(t)
	const batch, first, every = 3, 600, 97
	events := []func(f *schema.Frame) error{
		func(f *schema.Frame) error { return s.SetUint(f, 1, 0, 3) },
		func(f *schema.Frame) error { return s.SetUint(f, 2, 0, 9) },
		func(f *schema.Frame) error { return s.QuantizeField(f, 0, []float64{-9000, 5000, 40}) },
	}
	for k, event := range events {
		p := newPair(t, s, EncoderConfig{Codec: Adaptive, MaxBatchDelay: batch, Deadline: 13}, DecoderConfig{})
		rng := rand.New(rand.NewPCG(1, uint64(k)))
		waited, payloads, late := 0, 0, 0
		for n := range first + 10*every {
			batchFrame(t, s, p.frame, n, rng)
			urgent := n >= first && n%every == 0
			if urgent {
				must(t, event(p.frame))
			}
			must(t, p.enc.Hold(p.frame))
			if !p.enc.Due() {
				if waited++; urgent {
					late++
				}
				continue
			}
			for p.enc.Held() > 0 {
				p.payload, _ = p.enc.AppendHeld(p.payload[:0])
				payloads++
				if _, err := p.dec.Decode(p.payload); err != nil {
					t.Fatal(err)
				}
			}
			p.acknowledge(t)
		}
		if late != 0 {
			t.Errorf("event %d: %d of 10 urgent frames wait", k, late)
		}
		if frames := first + 10*every; float64(payloads) > 1.2*float64(frames)/(batch+1) {
			t.Errorf("event %d: %d payloads of %d frames", k, payloads, frames)
		}
	}
}

// TestUrgentCopies verifies that the copies of an urgent frame leave in the next ticks if payloads
// are lost, and no longer once it is acked.
func TestUrgentCopies(t *testing.T) {
	s := batchSchema(t)
	for _, acked := range []bool{false, true} {
		p := newPair(t, s, EncoderConfig{Codec: Adaptive, MaxBatchDelay: 3, Deadline: 20}, DecoderConfig{})
		rng := rand.New(rand.NewPCG(2, 3))
		p.enc.redundancy.loss = steadyLoss(0.1, 0)
		p.enc.redundancy.replan()
		n, buttons := 0, uint64(1)
		tick := func() (sent bool) {
			batchFrame(t, s, p.frame, n, rng)
			must(t, s.SetUint(p.frame, 1, 0, buttons))
			n++
			must(t, p.enc.Hold(p.frame))
			if !p.enc.Due() {
				return false
			}
			p.payload, _ = p.enc.AppendHeld(p.payload[:0])
			return true
		}
		for range 40 {
			if tick() {
				p.receive(t)
				p.acknowledge(t)
			}
		}
		p.enc.redundancy.loss = steadyLoss(0.1, 0)
		p.enc.redundancy.replan()
		for !tick() { // the next frame starts a batch
		}
		buttons = 2
		if !tick() {
			t.Fatal("an urgent frame waits")
		}
		if acked {
			p.receive(t)
			p.acknowledge(t)
		}
		for i := 1; i < p.enc.redundancy.urgentPayloads(); i++ {
			if sent := tick(); sent == acked {
				t.Errorf("acked %v: copy %d leaves: %v", acked, i, sent)
			}
		}
		if !acked && tick() {
			t.Error("a frame after the copies does not wait")
		}
	}
}
