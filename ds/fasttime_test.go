package ds_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

type step struct {
	X    float64 `uplink:"resolution=0.5"`
	Time float64 `uplink:"resolution=0.001,min=0,max=1"`
}

// TestTimeCheck plays a client that calls 1.1 times as often as it declared, or simulates 1.1 times
// as much per call, and an honest one.
func TestTimeCheck(t *testing.T) {
	for name, c := range map[string]struct {
		interval time.Duration
		delta    float64
		check    ds.TimeCheck
		fast     bool
	}{
		"honest":     {interval: time.Second / 60},
		"more calls": {interval: time.Second / 66, fast: true},
		"more time":  {interval: time.Second / 60, delta: 1.1 / 60, check: ds.TimeCheck{Delta: "Time"}, fast: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ahead []time.Duration
				c.check.Resolve = true
				c.check.Detected = func(_ *ds.Player, _ string, d time.Duration) { ahead = append(ahead, d) }
				calls := 0
				network := lossy(t)
				srv := uplinktest.Serve(t, network, ds.Config{}, handles("Step", func(*ds.Player, ds.Frame[step]) { calls++ }, c.check))
				conn := uplinktest.Dial(t, network, client.Config{})
				move, err := client.Bind[step](t.Context(), conn, "Step", client.BindConfig{})
				uplinktest.Must(t, err)
				sent := 0
				for start := time.Now(); time.Since(start) < 20*time.Second; sent++ {
					uplinktest.Must(t, uplinktest.Sent(move.Send(&step{X: float64(sent % 100), Time: c.delta})))
					time.Sleep(c.interval)
				}
				settle(time.Second)
				st := srv.Stats().RPCs[0]
				if (len(ahead) > 0) != c.fast || st.TimeDetections != uint64(len(ahead)) || (st.Drops[ds.AheadOfTime] > 0) != c.fast {
					t.Errorf("detections %v, stats %+v", ahead, st)
				}
				if limit := 20*60 + 18; c.delta == 0 && calls > limit {
					t.Errorf("%d calls were delivered, want up to %d", calls, limit)
				}
			})
		})
	}
}
