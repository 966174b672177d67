package adaptive_test

import (
	"math/rand/v2"
	"testing"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/adaptive"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// TestKeyframeBytes compares the estimated size of a keyframe with its size, for frames of few and
// many zeros.
func TestKeyframeBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	m := adaptive.Generic().Compile(allKinds)
	s, c := m.NewState(64), new(adaptive.Coder)
	var frame *schema.Frame
	for i := range 3000 {
		frame = randomFrame(r, allKinds, frame)
		for k := range frame.Ints {
			if r.IntN(200) < i%200 {
				frame.Ints[k] = 0
				if k < 4 && i%3 == 0 { // the quaternion's components are sent as zeros
					frame.Ints[k] = -allKinds[2].Hi * int32(min(k, 1))
				}
			}
		}
		got, want := m.KeyframeBytes(frame), len(c.Encode(nil, &adaptive.Payload{Frames: []*schema.Frame{frame}}, s, nil))
		if got < want-1 || got > want+1 {
			t.Fatalf("%d bytes estimated for %v, want %d", got, frame, want)
		}
		if lower := m.MinKeyframeBytes(frame); lower > got {
			t.Fatalf("%d bytes estimated for %v, lower bound %d", got, frame, lower)
		}
	}
}
