package metrics_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/metrics"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestPanics: a panic of a handler is counted, and so are the frames that are dropped because of
// it.
func TestPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := uplinktest.NewNetwork(t, simnet.Config{}, simnet.Config{})
		srv := uplinktest.Serve(t, network, ds.Config{Poll: true, Logger: slog.New(slog.DiscardHandler)}, func(s *ds.Server) error {
			return ds.Handle(s, "Move", func(*ds.Player, ds.Frame[uplinktest.Move]) { panic("a bug in the game") })
		})
		move := uplinktest.Bind(t, uplinktest.Dial(t, network, client.Config{}), "Move")
		for i := range uint64(5) {
			m := uplinktest.MoveAt(1, i)
			uplinktest.Must(t, move.Send(&m))
		}
		time.Sleep(time.Second)
		srv.Poll()
		r := prometheus.NewPedanticRegistry()
		r.MustRegister(metrics.NewServer(srv.Server))
		v := gather(t, r)
		if panics, drops := v.sum("uplink_ds_panics_total"), v.sum("uplink_ds_dropped_total", "reason=kicked"); panics != 1 || drops != 4 {
			t.Errorf("%v panics, %v frames dropped, want 1 and 4", panics, drops)
		}
	})
}
