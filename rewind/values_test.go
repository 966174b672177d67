package rewind_test

import (
	"math"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/rewind"
)

// TestTurned looks up an object in 2D between two ticks, whose angle turns the short way round.
func TestTurned(t *testing.T) {
	type turret struct {
		Place schema.Vec2  `interpolate:"position"`
		View  schema.Angle `interpolate:"orientation"`
		Lean  float32      `interpolate:"blend"`
	}
	adapter, err := interpolate.Tagged[turret]()
	if err != nil {
		t.Fatal(err)
	}
	h, err := rewind.New(adapter, rewind.Config{TickHz: 50})
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range []turret{{schema.Vec2{X: 1}, 175, 0}, {schema.Vec2{X: 2, Y: 4}, -165, 1}} {
		if err := h.Add(time.Duration(i)*20*time.Millisecond, []uint32{7}, []turret{v}); err != nil {
			t.Fatal(err)
		}
	}
	var got turret
	if !h.Object(rewind.Viewer{}, 15*time.Millisecond, 7, &got) || got.Place != (schema.Vec2{X: 1.75, Y: 3}) || math.Abs(float64(got.View)+170) > 1e-9 || got.Lean != 0.75 {
		t.Errorf("%+v", got)
	}
}
