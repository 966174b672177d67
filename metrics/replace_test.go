package metrics_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/metrics"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestReplace puts one connection in the place of another again and again: no counter goes back, none counts anything
// twice, and what is now is that of the last connection alone.
func TestReplace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := simnet.Config{Delay: 10 * time.Millisecond}
		network, err := simnet.NewNetwork(link, link)
		must(t, err)
		srv, err := ds.Listen("127.0.0.1:7777", ds.Config{Network: network})
		must(t, err)
		must(t, ds.Handle(srv, "ServerMove", func(*ds.Player, ds.Frame[move]) {}))
		served := make(chan error)
		go func() { served <- srv.Serve(context.Background()) }()
		var collector *metrics.Client
		r := prometheus.NewPedanticRegistry()
		var conn *client.Conn
		var before families
		for round := 1.0; round <= 4; round++ {
			next, err := client.Dial(t.Context(), "127.0.0.1:7777", client.Config{Network: network, Bandwidth: 1000})
			must(t, err)
			stream, err := client.Bind[move](t.Context(), next, "ServerMove", client.BindConfig{})
			must(t, err)
			if conn == nil {
				collector = metrics.NewClient(next)
				must(t, r.Register(collector))
			} else {
				must(t, conn.Close())
				collector.Replace(conn, next)
				collector.Replace(conn, next) // it is not there any more
			}
			conn = next
			for i := range 180 {
				must(t, stream.Send(&move{X: float64(i)}))
				time.Sleep(time.Second / 60)
			}
			time.Sleep(time.Second)
			v := gather(t, r)
			if n := v.sum("uplink_client_frames_total", "rpc=ServerMove"); n != round*180 {
				t.Errorf("round %v: %v frames", round, n)
			}
			if n := v.sum("uplink_client_bandwidth_limit_bytes_per_second"); n != 125 {
				t.Errorf("round %v: a limit of %v bytes a second", round, n)
			}
			for name := range v {
				if now, then := v.sum(name), before.sum(name); strings.HasSuffix(name, "_total") && now < then {
					t.Errorf("round %v: %s went from %v to %v", round, name, then, now)
				}
			}
			before = v
		}
		sent := srv.Stats().Transport.DatagramsReceived
		if n := before.sum("uplink_client_datagrams_total", "direction=sent"); n != float64(sent) {
			t.Errorf("%v datagrams sent, %d arrived where nothing is lost", n, sent)
		}
		if n := before.sum("uplink_client_over_bandwidth_bytes_total"); n == 0 {
			t.Error("a limit far too low was met")
		}
		must(t, conn.Close())
		must(t, srv.Close())
		must(t, <-served)
	})
}
