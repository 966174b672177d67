package metrics_test

import (
	"math"
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

// TestWireRatio verifies that both endpoints' metrics give the wire ratio by one rule, per RPC and
// in all: what both ends sent, as uplink demo counts it, over 15 s with losses.
func TestWireRatio(t *testing.T) {
	for name, preset := range map[string]client.Preset{"default": {}, "Balanced": client.Balanced, "LowBandwidth": client.LowBandwidth} {
		for _, loss := range []float64{0, 0.1} {
			t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { checkWireRatio(t, preset, loss) }) })
		}
	}
}

func checkWireRatio(t *testing.T, preset client.Preset, loss float64) {
	link := simnet.Config{Delay: 30 * time.Millisecond, Loss: loss, Seed: 1}
	network := uplinktest.NewNetwork(t, link, link)
	rpcs := []string{"ServerMove", "ServerAim"}
	srv := serve(t, network, ds.Config{}, rpcs...)
	conn := uplinktest.Dial(t, network, client.Config{Preset: preset})
	streams := make([]*client.Stream[move], len(rpcs))
	for i, rpc := range rpcs {
		var err error
		streams[i], err = client.Bind[move](t.Context(), conn, rpc, client.BindConfig{})
		must(t, err)
	}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(metrics.NewServer(srv), metrics.NewClient(conn))
	play := func(seconds int) {
		for i := range 60 * seconds {
			must(t, uplinktest.Sent(streams[0].Send(&move{X: 100 * math.Sin(float64(i)/50)})))
			if i%2 == 0 {
				must(t, uplinktest.Sent(streams[1].Send(&move{X: float64(i * i % 997), Buttons: uint8(i / 20)})))
			}
			time.Sleep(time.Second / 60)
		}
	}
	play(3)
	before, sent, acks := scrape.Gather(t, r), conn.Stats(), srv.Stats().Acks.WireBytes()
	play(15)
	time.Sleep(2 * time.Second) // the last datagrams and acks arrive
	now, after := scrape.Gather(t, r), conn.Stats()
	acks = srv.Stats().Acks.WireBytes() - acks

	all := float64(0)
	for i := range after.RPCs {
		all += float64(after.RPCs[i].Datagrams() - sent.RPCs[i].Datagrams())
	}
	var up, full float64
	check := func(rpc string, up, down, full float64) {
		want, tolerance := (up+down)/full, 0.01
		switch { // the server knows neither the RPCs nor the sizes of the lost datagrams
		case loss > 0 && rpc != "":
			tolerance = 0.1
		case loss > 0:
			tolerance = 0.03
		}
		for _, endpoint := range []string{scrape.Server, scrape.Client} {
			if got := scrape.WireRatio(before, now, endpoint, rpc); math.Abs(got/want-1) > tolerance {
				t.Errorf("loss %v: %s, RPC %q: %.4f, want %.4f", loss, endpoint, rpc, got, want)
			}
		}
	}
	for i := range after.RPCs {
		a, b := &after.RPCs[i], &sent.RPCs[i]
		u, f := float64(a.WireBytes()-b.WireBytes()), float64(a.FullWireBytes()-b.FullWireBytes())
		check(a.RPC, u, float64(acks)*float64(a.Datagrams()-b.Datagrams())/all, f)
		up, full = up+u, full+f
	}
	check("", up, float64(acks), full)
	srvStats := srv.Stats()
	if d, c := srvStats.WireRatio(""), after.WireRatio(""); math.Abs(d/c-1) > 0.03 {
		t.Errorf("loss %v: since the start %.4f at the server, %.4f at the client", loss, d, c)
	}
}
