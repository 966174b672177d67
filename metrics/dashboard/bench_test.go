package dashboard

import (
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// thousandPlayers returns a server with 1,000 players, each of which has called an RPC.
func thousandPlayers(b *testing.B) *ds.Server {
	b.Helper()
	network, err := simnet.NewNetwork(simnet.Config{Seed: 1}, simnet.Config{Seed: 2})
	uplinktest.Must(b, err)
	srv := uplinktest.Serve(b, network, ds.Config{}, func(s *ds.Server) error {
		return ds.Handle(s, "Move", func(*ds.Player, ds.Frame[uplinktest.Move]) {})
	})
	for i := range uint64(1000) {
		move := uplinktest.Bind(b, uplinktest.Dial(b, network, client.Config{}), "Move", client.BindConfig{RateHz: 60})
		for n := range uint64(3) {
			m := uplinktest.MoveAt(i, n)
			_, _ = move.Send(&m)
		}
	}
	return srv.Server
}

// BenchmarkThousandPlayers measures one second of a dashboard with 1,000 players: without a page,
// and with one that has been open for ten minutes. It reports the share of a core.
func BenchmarkThousandPlayers(b *testing.B) {
	srv := thousandPlayers(b)
	for _, open := range []bool{false, true} {
		b.Run(fmt.Sprintf("open=%v", open), func(b *testing.B) {
			begin, i := time.Now(), 0
			d := New(srv, Config{Open: true})
			s := sampler{dashboard: d, last: observe(srv, nil, begin)}
			var p page
			if open {
				p = *d.hub.open()
				s.startDetails(begin)
				defer s.stopDetails()
			}
			second := func() {
				i++
				s.step(begin.Add(time.Duration(i) * interval))
				for len(p.events) > 0 {
					<-p.events
				}
				if open {
					d.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/players?n=15", nil))
				}
			}
			for range span {
				second()
			}
			b.ReportAllocs()
			for b.Loop() {
				second()
			}
			b.ReportMetric(100*b.Elapsed().Seconds()/float64(b.N)/interval.Seconds(), "%core")
		})
	}
}
