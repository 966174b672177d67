package dashboard

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// crowd returns a server with 1,000 players, each of which has called an RPC.
func crowd(b *testing.B) *ds.Server {
	b.Helper()
	const players = 1000
	network, err := simnet.NewNetwork(simnet.Config{Seed: 1}, simnet.Config{Seed: 2})
	uplinktest.Must(b, err)
	srv := uplinktest.Serve(b, network, ds.Config{}, func(s *ds.Server) error {
		return ds.Handle(s, "Move", func(*ds.Player, ds.Frame[uplinktest.Move]) {})
	})
	var joining sync.WaitGroup
	for worker := range 8 {
		joining.Go(func() {
			for i := worker; i < players; i += 8 {
				conn, err := client.Dial(b.Context(), uplinktest.Addr, client.Config{Network: network})
				if err != nil {
					b.Error(err)
					return
				}
				b.Cleanup(func() { _ = conn.Close() })
				move, err := client.Bind[uplinktest.Move](b.Context(), conn, "Move", client.BindConfig{RateHz: 60})
				if err != nil {
					b.Error(err)
					return
				}
				for n := range uint64(3) {
					m := uplinktest.MoveAt(uint64(i), n)
					_ = move.Send(&m)
				}
			}
		})
	}
	joining.Wait()
	if b.Failed() {
		b.FailNow()
	}
	return srv.Server
}

// waiting returns the number of queued events.
func (h *hub) waiting() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for p := range h.pages {
		n += len(p.events)
	}
	return n
}

// share reports the CPU time per second, in percent of a core.
func share(b *testing.B) {
	b.ReportMetric(100*b.Elapsed().Seconds()/float64(b.N)/interval.Seconds(), "%core")
}

// BenchmarkThousandPlayers measures one second of a dashboard with 1,000 players: without a page,
// and with one that has been open for ten minutes, over HTTP in the same process.
func BenchmarkThousandPlayers(b *testing.B) {
	srv := crowd(b)
	begin := time.Now()
	b.Run("closed", func(b *testing.B) {
		s := sampler{dashboard: New(srv, Config{})}
		s.last = observe(srv, begin)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			s.step(begin.Add(time.Duration(i) * interval))
		}
		share(b)
	})
	b.Run("open", func(b *testing.B) {
		d := New(srv, Config{})
		s := sampler{dashboard: d}
		s.last = observe(srv, begin)
		web := httptest.NewServer(d)
		ctx, leave := context.WithCancel(b.Context())
		r, err := http.NewRequestWithContext(ctx, "GET", web.URL+"/events", nil)
		uplinktest.Must(b, err)
		answer, err := http.DefaultClient.Do(r)
		uplinktest.Must(b, err)
		read := make(chan struct{})
		go func() {
			defer close(read)
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
		}()
		<-d.hub.woken
		s.startDetails(begin)
		second := func(i int) {
			s.step(begin.Add(time.Duration(i) * interval))
			for d.hub.waiting() > 0 {
				runtime.Gosched() // include writing
			}
		}
		for i := range span {
			second(i)
		}
		b.ReportAllocs()
		for i := span; b.Loop(); i++ {
			second(i)
		}
		share(b)
		if !d.hub.watched() {
			b.Error("the page was dropped")
		}
		s.stopDetails()
		leave()
		web.Close()
		<-read
		http.DefaultClient.CloseIdleConnections()
	})
}
