package interpolate_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/interpolate"
)

// TestRule checks the default delay for several losses.
func TestRule(t *testing.T) {
	for loss, intervals := range map[float64]int{0: 1, -1: 1, 1e-4: 1, 0.01: 2, 0.02: 3, 0.05: 3, 0.1: 4, 0.2: 6, 0.5: 13, 0.9: 16, 1: 13, math.NaN(): 13} {
		if got, want := interpolate.Delay(100*ms, 50*ms, loss), time.Duration(intervals)*100*ms+50*ms; got != want {
			t.Errorf("loss %v: %v, want %v", loss, got, want)
		}
	}
	for hz, want := range map[int]time.Duration{10: 350 * ms, 30: 150 * ms, 60: 100 * ms} {
		if got := interpolate.Delay(time.Second/time.Duration(hz), 50*ms, 0.05); (got - want).Abs() > ms {
			t.Errorf("%d Hz: %v, want %v", hz, got, want)
		}
	}
}

func TestConfig(t *testing.T) {
	for field, c := range map[string]interpolate.Config{
		"Interval is 0s":    {},
		"Interval is 11s":   {Interval: 11 * time.Second},
		"Method is 3":       {Method: 3},
		"Method is -1":      {Method: -1},
		"Delay is -1ms":     {Delay: -ms},
		"Jitter is 2h":      {Jitter: 2 * time.Hour},
		"MaxDelay is -1ms":  {MaxDelay: -ms},
		"Extrapolate is 1s": {Extrapolate: time.Second},
		"Gap is -1ms":       {Gap: -ms},
		"Loss is 1,":        {Loss: 1},
		"Loss is NaN":       {Loss: math.NaN()},
		"Late is -0.1":      {Late: -0.1},
		"Snapshots is 4, must be from 5, for a delay of 350ms": {Snapshots: 4},
		"Snapshots is 6, must be from 8, for a delay of 600ms": {Snapshots: 6, Adaptive: true},
		"Snapshots is 1025,": {Snapshots: 1025},
		"Objects is -1,":     {Objects: -1},
		"Objects is 65537,":  {Objects: 65537},
	} {
		if !strings.HasPrefix(field, "Interval") {
			c.Interval = 100 * ms
		}
		if _, err := interpolate.New(things{}, c); err == nil || !strings.HasPrefix(err.Error(), "interpolate: Config."+field) {
			t.Errorf("%v, want Config.%s", err, field)
		}
	}
}
