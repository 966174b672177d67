package metrics_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/scrape"
	"github.com/uplink-rpc/uplink/metrics"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestReplace replaces a connection several times. No counter decreases or counts twice, and gauges
// are those of the last connection.
func TestReplace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := simnet.Config{Delay: 10 * time.Millisecond}
		network := uplinktest.NewNetwork(t, link, link)
		srv := serve(t, network, ds.Config{}, "ServerMove")
		var collector *metrics.Client
		r := prometheus.NewPedanticRegistry()
		var conn *client.Conn
		var before scrape.Families
		for round := 1.0; round <= 4; round++ {
			next := uplinktest.Dial(t, network, client.Config{Bandwidth: 1000})
			stream, err := client.Bind[move](t.Context(), next, "ServerMove", client.BindConfig{})
			must(t, err)
			if conn == nil {
				collector = metrics.NewClient(next)
				must(t, r.Register(collector))
			} else {
				must(t, conn.Close())
				collector.Replace(conn, next)
				collector.Replace(conn, next) // has no effect
			}
			conn = next
			for i := range 180 {
				must(t, uplinktest.Sent(stream.Send(&move{X: float64(i)})))
				time.Sleep(time.Second / 60)
			}
			time.Sleep(time.Second)
			v := scrape.Gather(t, r)
			if n := v.Sum("uplink_client_frames_total", "rpc=ServerMove"); n != round*180 {
				t.Errorf("round %v: %v frames", round, n)
			}
			if n := v.Sum("uplink_client_bandwidth_limit_bytes_per_second"); n != 125 {
				t.Errorf("round %v: a limit of %v bytes a second", round, n)
			}
			for name := range v {
				if now, then := v.Sum(name), before.Sum(name); strings.HasSuffix(name, "_total") && now < then {
					t.Errorf("round %v: %s went from %v to %v", round, name, then, now)
				}
			}
			before = v
		}
		sent := srv.Stats().Transport.DatagramsReceived
		if n := before.Sum("uplink_client_datagrams_total", "direction=sent"); n != float64(sent) {
			t.Errorf("%v datagrams sent, %d arrived where nothing is lost", n, sent)
		}
		if n := before.Sum("uplink_client_over_bandwidth_bytes_total"); n == 0 {
			t.Error("a limit far too low was met")
		}
	})
}
