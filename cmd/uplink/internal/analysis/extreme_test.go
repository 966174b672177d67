package analysis

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/simlink"
	"github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

func number(v float64) *float64 { return &v }

// TestExtremes: values that jump as far as they can, or never move, come to numbers that can be
// printed, whatever the kinds; JSON has no others.
func TestExtremes(t *testing.T) {
	fields := []schema.Field{
		{Name: "Wide", Kind: schema.KindVec3, Resolution: 1, Min: number(-math.MaxInt32), Max: number(math.MaxInt32), Velocity: "Fine"},
		{Name: "Fine", Kind: schema.KindVec3, Resolution: 1e-300, Velocity: "V"},
		{Name: "V", Kind: schema.KindVec3, Resolution: 1e300},
		{Name: "Turn", Kind: schema.KindQuat, Bits: 20, Velocity: "V"},
		{Name: "Aim", Kind: schema.KindUnitVec, Bits: 3},
		{Name: "Long", Kind: schema.KindInt, Width: 64, Count: 2},
		{Name: "Count", Kind: schema.KindUint, Width: 33},
		{Name: "Angle", Kind: schema.KindAngle, Bits: 24},
		{Name: "Set", Kind: schema.KindBits, Width: 50},
		{Name: "B", Kind: schema.KindBytes, Max: number(40)},
	}
	s, err := schema.New("Move", 60, fields)
	uplinktest.Must(t, err)
	rapid.Check(t, func(t *rapid.T) {
		tr := &trace.Trace{Name: "extreme", Schema: s}
		restless := rapid.SampledFrom([]int{0, 1, 5, 100}).Draw(t, "percent that move")
		seed := rapid.Uint64().Draw(t, "seed")
		pick := func() uint64 { // a generator of its own: drawing each would take long
			seed ^= seed << 13
			seed ^= seed >> 7
			seed ^= seed << 17
			return seed
		}
		seed |= 1
		f := s.NewFrame()
		for range rapid.IntRange(1, 60).Draw(t, "frames") {
			for i := range fields {
				if int(pick()%100) < restless {
					set(t, s, f, i, pick)
				}
			}
			next := s.NewFrame()
			next.CopyFrom(f)
			tr.Frames = append(tr.Frames, *next)
		}
		cfg := atDistance(rapid.IntRange(0, 5).Draw(t, "distance"))
		if cfg.Distance == 0 {
			cfg.Link = simlink.Config{RTT: 70 * time.Millisecond, Loss: .2, Burst: 2, Seed: seed}
		}
		r, err := Run(t.Context(), tr, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Fatalf("%v in %+v", err, r)
		}
		if _, err := HTML([]*Report{r}); err != nil {
			t.Fatal(err)
		}
	})
}

// set sets a field to a random value in its range, often a limit of it.
func set(t *rapid.T, s *schema.Schema, f *schema.Frame, i int, pick func() uint64) {
	t.Helper()
	field := &s.Fields()[i]
	unit := func() float64 {
		if pick()%2 == 0 {
			return float64(int64(pick()%3) - 1)
		}
		return float64(int64(pick())) / math.MaxInt64
	}
	var err error
	switch field.Kind {
	case schema.KindBytes:
		err = s.SetBytes(f, i, make([]byte, pick()%41))
	case schema.KindInt:
		for k := range field.Count {
			err = s.SetInt(f, i, k, int64(pick()))
		}
	case schema.KindUint, schema.KindBits:
		err = s.SetUint(f, i, 0, pick()>>(64-field.Width))
	default:
		values := make([]float64, field.Values())
		for k := range values {
			switch values[k] = unit(); {
			case field.Max != nil:
				values[k] *= *field.Max
			case field.Resolution != 0:
				values[k] *= field.Resolution * (1<<23 - 1)
			case field.Kind == schema.KindAngle:
				values[k] *= 360
			default:
				values[0] = 1
			}
		}
		err = s.QuantizeField(f, i, values)
	}
	if err != nil {
		t.Fatal(err)
	}
}
