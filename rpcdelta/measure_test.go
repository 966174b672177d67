package rpcdelta

import (
	"math/rand/v2"
	"testing"
)

// TestMeasureFields: what fields take adds up to the payload, but for the number of
// frames and the rounding to bytes, and is where the changes are.
func TestMeasureFields(t *testing.T) {
	for _, redundancy := range []int{RedundancyOff, 3} {
		s := mustSchema(t, Field{Name: "Still", Kind: KindVec3, Resolution: 1}, Field{Name: "B", Kind: KindFixed, Size: 8}, Field{Name: "Noise", Kind: KindVec2, Resolution: 1})
		p := newPair(t, s, EncoderConfig{Codec: Adaptive, Redundancy: redundancy}, DecoderConfig{})
		bits := make([]float64, 3)
		if err := p.enc.MeasureFields(bits); err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, 1))
		sent, payloads := 0, 0
		for i := range 300 {
			p.frame.Ints[3], p.frame.Ints[4] = int32(rng.IntN(1000)), int32(rng.IntN(1000))
			sent += p.send(t).PayloadBits
			payloads++
			if i%3 == 0 {
				p.receive(t)
				p.acknowledge(t)
			}
		}
		sum := bits[0] + bits[1] + bits[2]
		if rest := float64(sent) - sum; rest < 0 || rest > float64(16*payloads) {
			t.Errorf("redundancy %d: fields take %v bits of %d in %d payloads", redundancy, bits, sent, payloads)
		}
		if bits[2] < 0.9*sum {
			t.Errorf("redundancy %d: fields take %v bits", redundancy, bits)
		}
		if err := p.enc.MeasureFields(nil); err != nil {
			t.Fatal(err)
		}
		p.exchange(t)
		if now := bits[0] + bits[1] + bits[2]; now != sum {
			t.Errorf("%v bits are measured after the end", now-sum)
		}
		if err := p.enc.MeasureFields(bits[:2]); err == nil {
			t.Error("room for 2 of 3 fields was taken")
		}
	}
}
