package rpcdelta

import (
	"testing"

	"github.com/uplink-rpc/uplink/schema"
)

// TestWrap: more than three turns of the 16-bit sequence, with loss and
// reordering.
func TestWrap(t *testing.T) { forVariants(t, checkWrap) }

func checkWrap(t *testing.T, v variant) {
	if testing.Short() && v.codec == Adaptive {
		t.Skip("long")
	}
	frames := 210_000
	if testing.Short() || v.redundancy != 0 {
		frames = 70_000
	}
	s, err := schema.New("Small", 60, []schema.Field{{Name: "P", Kind: schema.KindVec3, Resolution: 0.01}})
	if err != nil {
		t.Fatal(err)
	}
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
