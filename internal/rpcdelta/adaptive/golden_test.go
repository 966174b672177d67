package adaptive_test

import (
	"hash/fnv"
	"math/rand/v2"
	"testing"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/adaptive"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// TestGolden checks that the bytes of whole sessions are the same on every platform and in every
// version.
func TestGolden(t *testing.T) {
	for _, g := range []struct {
		name   string
		fields []adaptive.Field
		bytes  int
		sum    uint64
	}{
		{"vehicle", vehicleFields, 16417, 0x362c6ef7fe7eda4e},
		{"everything", allKinds, 54986, 0xbbf3ea460fe0268c},
	} {
		m := adaptive.Generic().Compile(g.fields)
		e := newEnd(m, g.fields, 64)
		r := rand.New(rand.NewPCG(5, 6))
		smooth := smoothFrames(700)
		var frames []*schema.Frame
		h, total := fnv.New64a(), 0
		acked := -1
		for i := range smooth {
			frame := smooth[i]
			if g.name != "vehicle" {
				var old *schema.Frame
				if i > 0 {
					old = frames[i-1]
				}
				frame = randomFrame(r, g.fields, old)
			}
			frames = append(frames, frame)
			n := min(1+i%3, i-acked)
			p := e.encode(nil, frames[i+1-n:], uint64(i), uint64(max(0, acked)), acked >= 0)
			h.Write(p)
			h.Write([]byte{byte(len(p))})
			total += len(p)
			if i%5 == 4 { // most of the last five are acked
				for k := i - 4; k <= i; k++ {
					if r.IntN(8) != 0 {
						e.learn(uint64(k), frames[k])
						acked = k
					}
				}
			}
		}
		if total != g.bytes || h.Sum64() != g.sum {
			t.Errorf("%s: %d bytes, sum %#x; want %d, %#x", g.name, total, h.Sum64(), g.bytes, g.sum)
		}
	}
}
