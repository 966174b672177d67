package rpcdelta

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// batchLink sends frames of a walk, one in each tick, over a link that loses payloads and acks
// independently. Payloads and acks take half of delay each.
type batchLink struct {
	cfg    EncoderConfig
	loss   float64
	delay  int // ticks from a payload to its ack
	frames int
	seed   uint64
}

type batchResult struct {
	inTime    float64 // share of the frames that arrive by the deadline
	bits      float64 // payload bits per frame, copies included
	datagrams float64 // per frame
	waited    int     // maximum number of ticks for which a frame waited
}

func (l *batchLink) run(t *testing.T) (r batchResult) {
	t.Helper()
	s := batchSchema(t)
	var dec DecoderConfig
	if l.cfg.Repair {
		dec.RepairTime = l.cfg.Deadline - l.cfg.MaxBatchDelay
	}
	p := newPair(t, s, l.cfg, dec)
	rng := rand.New(rand.NewPCG(l.seed, 1))
	type arrival struct {
		tick     int
		payloads [][]byte
		ack      []byte
	}
	var up, down []arrival
	arrived, bits, datagrams := 0, 0, 0
	for n := range l.frames {
		for ; len(down) > 0 && down[0].tick <= n; down = down[1:] {
			ack, _, err := ParseAck(down[0].ack)
			must(t, err)
			must(t, p.enc.Ack(ack))
		}
		batchFrame(t, s, p.frame, n, rng)
		must(t, p.enc.Hold(p.frame))
		if p.enc.Due() {
			a := arrival{tick: n + l.delay/2}
			r.waited = max(r.waited, p.enc.Held()-1)
			for b, _ := p.enc.AppendHeld(nil); b != nil; b = p.enc.AppendRepair(nil) {
				a.payloads = append(a.payloads, b)
				bits += 8 * len(b)
			}
			if datagrams++; rng.Float64() >= l.loss {
				up = append(up, a)
			}
		}
		for ; len(up) > 0 && up[0].tick <= n; up = up[1:] {
			for _, b := range up[0].payloads {
				out, err := p.dec.Decode(b)
				if err != nil && !errors.Is(err, ErrDuplicate) {
					t.Fatalf("seed %d, frame %d: %v", l.seed, n, err)
				}
				for _, d := range out {
					if n-int(d.Seq)-l.delay/2 <= l.cfg.Deadline {
						arrived++
					}
				}
			}
			if ack := p.dec.AppendAck(nil); rng.Float64() >= l.loss {
				down = append(down, arrival{tick: n + l.delay - l.delay/2, ack: ack})
			}
		}
	}
	frames := float64(l.frames)
	return batchResult{float64(arrived) / (frames - float64(l.delay)), float64(bits) / frames, float64(datagrams) / frames, r.waited}
}

// TestRepair verifies that frames arrive by their deadline at every loss, that none waits for more
// than MaxBatchDelay, and that repeating payloads whose acks are overdue takes fewer bits than
// repeating all frames, if the deadline leaves time for that.
func TestRepair(t *testing.T) {
	frames := 20_000 / thin(4)
	for _, loss := range []float64{0, 0.02, 0.1} {
		l := batchLink{loss: loss, delay: 8, frames: frames, seed: 7}
		l.cfg = EncoderConfig{Codec: Adaptive, MaxBatchDelay: 3, Deadline: 14}
		never := l.run(t)
		l.cfg.Repair = true
		always := l.run(t)
		l.delay = 14 // too long
		slow := l.run(t)
		for _, r := range []batchResult{never, always, slow} {
			if r.inTime < 0.997 || r.waited > l.cfg.MaxBatchDelay {
				t.Errorf("loss %v: %+v", loss, r)
			}
		}
		if loss == 0 && always != never || loss > 0 && always.bits > 0.95*never.bits {
			t.Errorf("loss %v: %+v with repair, %+v without", loss, always, never)
		}
		if slow.datagrams > 1.1*never.datagrams {
			t.Errorf("loss %v: %+v with slow acks, %+v without repair", loss, slow, never)
		}
	}
}
