package rpcdelta

import (
	"fmt"
	"testing"

	"github.com/uplink-rpc/uplink/internal/schema"
)

// TestDeltasOnCleanLinks verifies that all but the first frames are deltas if the rings cover the
// round-trip time, and that acks have 4 bytes.
func TestDeltasOnCleanLinks(t *testing.T) { forVariants(t, checkDeltasOnCleanLinks) }

func checkDeltasOnCleanLinks(t *testing.T, v variant) {
	for _, c := range []struct{ delay, every, ring int }{
		{0, 1, 2}, {1, 1, 8}, {3, 2, 16}, {30, 1, 64}, {15, 30, 64}, {100, 1, 256},
	} {
		if v.codec == Adaptive && 2*c.delay > 63 {
			continue // it looks back no further
		}
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			x := newStream(t, smallSchema(t), v.stream(streamConfig{
				Seed: 1, Ring: c.ring, PeerRing: c.ring, AckEvery: c.every, Smooth: true,
				Up: linkConfig{Delay: c.delay}, Down: linkConfig{Delay: c.delay},
			}))
			x.run(t, 2*c.delay+c.every+1)
			if n := x.deltasIn(t, 1000); n < 990 { // sometimes the keyframe is as short
				t.Errorf("%d deltas of 1000 frames, %d resets", n, x.kinds[Reset])
			}
			if n := x.kinds[Reset]; n > 2*c.delay+c.every+1 || len(x.ack) > 4 {
				t.Errorf("%d frames that reset, ack of %d bytes", n, len(x.ack))
			}
		})
	}
}

// TestReach covers the oldest baseline that the rings permit.
func TestReach(t *testing.T) { forVariants(t, checkReach) }

func checkReach(t *testing.T, v variant) {
	for _, c := range []struct{ ring, peer, reach int }{{2, 2, 1}, {64, 64, 63}, {MaxRing, 16, 15}, {16, MaxRing, 15}, {MaxRing, MaxRing, 255}} {
		if v.codec == Adaptive {
			c.reach = min(c.reach, 63)
		}
		p := newPair(t, smallSchema(t), v.encoder(EncoderConfig{Ring: c.ring, PeerRing: c.peer}), DecoderConfig{Ring: c.peer})
		p.frame.Ints[0] = 1 << 20
		p.exchange(t)
		for age := 1; age < 300; age++ {
			want := Info{Kind: Delta, BaselineAge: age}
			if age > c.reach {
				want = Info{Kind: Keyframe}
			}
			info := p.send(t)
			p.receive(t)
			if info.Kind != want.Kind || info.BaselineAge != want.BaselineAge {
				t.Fatalf("%+v: %+v, want %+v", c, info, want)
			}
		}
	}
}

// TestWrap sends frames until the 16-bit sequence wraps twice, with loss and reordering.
func TestWrap(t *testing.T) { forVariants(t, checkWrap) }

func checkWrap(t *testing.T, v variant) {
	if testing.Short() && v.codec == Adaptive {
		t.Skip("long")
	}
	frames := 140_000
	if testing.Short() || v.redundancy != 0 {
		frames = 70_000
	}
	s, err := schema.New("Small", 60, []schema.Field{{Name: "P", Kind: schema.KindVec3, Resolution: 0.01}})
	must(t, err)
	x := newStream(t, s, v.stream(streamConfig{
		Seed: 7, AckEvery: 3, DeliverLate: true,
		Up:   linkConfig{Delay: 5, Jitter: 6, Loss: 0.1, Duplicate: 0.05},
		Down: linkConfig{Delay: 5, Loss: 0.1},
	}))
	x.run(t, frames)
	if x.last < int64(frames)-100 || x.delivered < uint64(frames)*8/10 || x.late == 0 || x.kinds[Reset] > 40 {
		t.Errorf("at %d: %d delivered, %d late, %v", x.last, x.delivered, x.late, x.kinds)
	}
}
