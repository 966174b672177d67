package main

import (
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/metrics"
	"github.com/uplink-rpc/uplink/schema"
)

// avatar is a call of a gameServer's player, and an object of its worlds.
type avatar struct {
	Position schema.Vec3 `uplink:"resolution=0.01,min=-100,max=100"`
}

// gameServer starts a game that covers what the commands' own servers do not: jitter buffers, a
// snapshot channel and a state channel, and one player. It returns the URL that serves the metrics
// of the server and the player.
func gameServer(t *testing.T) (url string) {
	t.Helper()
	ctx := t.Context() // done when the test ends, before anything is closed
	check := func(err error) {
		if err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	}
	var stream *ds.StateStream[avatar]
	var snapshots, states *ds.World[avatar]
	srv, err := ds.Listen("127.0.0.1:0", ds.Config{Poll: true, JitterBuffer: &ds.JitterBuffer{}, Joined: func(p *ds.Player) {
		_, err := snapshots.Offer(p)
		check(err)
		stream, err = states.OfferState(p, ds.StateConfig{})
		check(err)
	}})
	must(t, err)
	must(t, ds.Handle(srv, "GameMove", func(*ds.Player, ds.Frame[avatar]) {}))
	snapshots, err = ds.NewWorld(srv, "seen", ds.WorldConfig[avatar]{TickHz: 60, SendHz: 20})
	must(t, err)
	states, err = ds.NewWorld(srv, "simulated", ds.WorldConfig[avatar]{TickHz: 60})
	must(t, err)

	var running sync.WaitGroup
	t.Cleanup(func() {
		running.Wait()
		must(t, srv.Close())
	})
	running.Go(func() { _ = srv.Serve(ctx) })
	each := func(f func(n uint64)) {
		running.Go(func() {
			tick := time.NewTicker(time.Second / 60)
			defer tick.Stop()
			for n := uint64(1); ; n++ {
				select {
				case <-tick.C:
					f(n)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	each(func(n uint64) {
		srv.Poll()
		at := avatar{schema.Vec3{X: float64(n%1000) / 10}}
		for _, w := range []*ds.World[avatar]{snapshots, states} {
			check(w.Begin(n))
			check(w.Put(1, 0, &at))
			w.Commit()
			if w == states && stream != nil {
				check(stream.Prioritize(1, 1))
			}
			_, err := w.Send()
			check(err)
		}
	})

	conn, err := client.Dial(ctx, srv.Addr().String(), client.Config{})
	must(t, err)
	t.Cleanup(func() { must(t, conn.Close()) })
	_, err = client.SubscribeSnapshots(t.Context(), conn, "seen", client.SnapshotConfig[avatar]{})
	must(t, err)
	_, err = client.SubscribeState(t.Context(), conn, "simulated", client.StateConfig[avatar]{Handle: func(*client.StateUpdate[avatar]) {}})
	must(t, err)
	move, err := client.Bind[avatar](t.Context(), conn, "GameMove", client.BindConfig{RateHz: 60})
	must(t, err)
	each(func(n uint64) { check(move.Send(&avatar{schema.Vec3{Y: float64(n%1000) / 10}})) })

	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewServer(srv), metrics.NewClient(conn))
	web := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(web.Close)
	return web.URL
}
