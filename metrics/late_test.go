package metrics_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/metrics"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestLateFrames: a counter of missed frames that fell when one came after all would look like a restart.
func TestLateFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := simnet.Config{Delay: 30 * time.Millisecond, Jitter: 30 * time.Millisecond, Loss: 0.1, Seed: 1}
		network, err := simnet.NewNetwork(link, simnet.Config{})
		must(t, err)
		srv, err := ds.Listen("127.0.0.1:7777", ds.Config{Network: network, DeliverLate: true})
		must(t, err)
		must(t, ds.Handle(srv, "Move", func(*ds.Player, ds.Frame[move]) {}))
		served := make(chan error)
		go func() { served <- srv.Serve(context.Background()) }()
		conn, err := client.Dial(t.Context(), "127.0.0.1:7777", client.Config{Network: network, Redundancy: rpcdelta.RedundancyOff})
		must(t, err)
		stream, err := client.Bind[move](t.Context(), conn, "Move", client.BindConfig{})
		must(t, err)
		r := prometheus.NewPedanticRegistry()
		r.MustRegister(metrics.NewServer(srv))
		before, late, frames := 0.0, 0.0, 0.0
		for i := range 600 {
			must(t, stream.Send(&move{X: float64(i)}))
			time.Sleep(time.Second / 60)
			v := gather(t, r)
			missed := v.sum("uplink_ds_missed_frames_total")
			if missed < before {
				t.Fatalf("frame %d: %v missed, before it were %v", i, missed, before)
			}
			before, late, frames = missed, v.sum("uplink_ds_late_frames_total"), v.sum("uplink_ds_frames_total")
		}
		if lost := before - late; late < 20 || lost < 0 || frames+lost > 600 || frames+lost < 590 {
			t.Errorf("%v missed, of them %v late, %v delivered", before, late, frames)
		}
		must(t, conn.Close())
		must(t, srv.Close())
		must(t, <-served)
	})
}
