package rpcdelta

import (
	"errors"
	"testing"
)

// TestReliable verifies that each frame is coded against the one before, without acks.
func TestReliable(t *testing.T) { forVariants(t, checkReliable) }

func checkReliable(t *testing.T, v variant) {
	for _, ring := range []int{2, 64} {
		x := newStream(t, smallSchema(t), v.stream(streamConfig{
			Seed: 1, Ring: ring, PeerRing: ring, Reliable: true, Smooth: true, Up: linkConfig{Delay: 100},
		}))
		x.run(t, 1)
		if x.kinds[Reset] != 1 {
			t.Errorf("the first frame: %v", x.kinds)
		}
		if n := x.deltasIn(t, 1000); n < 950 {
			t.Errorf("%d deltas of 1000 frames", n)
		}
		if x.down.sent != 0 {
			t.Errorf("%d acks", x.down.sent)
		}
		if x.delivered != 1001-100 || x.missed != 0 {
			t.Errorf("%d delivered, %d missed", x.delivered, x.missed)
		}
	}
}

// TestReliableGap verifies that a gap on a reliable channel is an error.
func TestReliableGap(t *testing.T) { forVariants(t, checkReliableGap) }

func checkReliableGap(t *testing.T, v variant) {
	p := newPair(t, smallSchema(t), v.encoder(EncoderConfig{Reliable: true}), DecoderConfig{Reliable: true})
	p.exchange(t)
	p.send(t)
	p.send(t)
	if _, err := p.dec.Decode(p.payload); !errors.Is(err, ErrMalformed) {
		t.Errorf("%v, want %v", err, ErrMalformed)
	}
	if p.dec.AckDue() {
		t.Error("an ack is due")
	}
}
