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
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestWorlds: both ends count the messages of a world, and what was dropped of it, under its name.
func TestWorlds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, err := simnet.NewNetwork(simnet.Config{}, simnet.Config{Delay: 10 * time.Millisecond, Loss: 0.2, Seed: 1})
		must(t, err)
		var world *ds.World[move]
		srv, err := ds.Listen("127.0.0.1:7777", ds.Config{Network: network, Joined: func(p *ds.Player) {
			_, err := world.Offer(p)
			must(t, err)
		}})
		must(t, err)
		world, err = ds.NewWorld(srv, "moves", ds.WorldConfig[move]{})
		must(t, err)
		served := make(chan error)
		go func() { served <- srv.Serve(context.Background()) }()
		conn, err := client.Dial(t.Context(), "127.0.0.1:7777", client.Config{Network: network})
		must(t, err)
		view, err := client.SubscribeSnapshots(t.Context(), conn, "moves", client.SnapshotConfig[move]{})
		must(t, err)
		time.Sleep(time.Second)
		const ticks = 100
		for i := range ticks {
			must(t, world.Begin(uint64(i+1)))
			for id := range uint16(10) {
				must(t, world.Put(id, 0, &move{X: float64(i) * float64(id)}))
			}
			world.Commit()
			_, err := world.Send()
			must(t, err)
			time.Sleep(time.Second / 60)
		}
		time.Sleep(time.Second)
		server, cl := prometheus.NewPedanticRegistry(), prometheus.NewPedanticRegistry()
		server.MustRegister(metrics.NewServer(srv))
		cl.MustRegister(metrics.NewClient(conn))
		s, c := gather(t, server), gather(t, cl)
		came, sent := float64(view.Stats().Messages), s.sum("uplink_ds_world_messages_total", "world=moves")
		if sent != ticks || came < ticks/2 || came == ticks {
			t.Errorf("%v sent, %v came", sent, came)
		}
		for name, want := range map[string]float64{
			"uplink_ds_world_players":              1,
			"uplink_ds_world_acked_messages_total": came,
			"uplink_ds_world_datagrams_total":      ticks,
			"uplink_ds_world_updates_total":        0,
		} {
			if got := s.sum(name, "world=moves"); got != want {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
		if got := c.sum("uplink_client_world_messages_total", "world=moves"); got != came {
			t.Errorf("the client counts %v, %v came", got, came)
		}
		if got := c.sum("uplink_client_dropped_total", "rpc=moves", "channel=replication"); got != 0 {
			t.Errorf("%v dropped", got)
		}
		must(t, conn.Close())
		must(t, srv.Close())
		must(t, <-served)
	})
}

// TestStateWorlds: of a world that goes down as state both ends count objects, and what nobody polled.
func TestStateWorlds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, err := simnet.NewNetwork(simnet.Config{}, simnet.Config{Delay: 10 * time.Millisecond, Seed: 1})
		must(t, err)
		var world *ds.World[move]
		joined := make(chan *ds.StateStream[move], 1)
		srv, err := ds.Listen("127.0.0.1:7777", ds.Config{Network: network, Joined: func(p *ds.Player) {
			s, err := world.OfferState(p, ds.StateConfig{})
			must(t, err)
			joined <- s
		}})
		must(t, err)
		world, err = ds.NewWorld(srv, "moves", ds.WorldConfig[move]{})
		must(t, err)
		served := make(chan error)
		go func() { served <- srv.Serve(context.Background()) }()
		conn, err := client.Dial(t.Context(), "127.0.0.1:7777", client.Config{Network: network})
		must(t, err)
		view, err := client.SubscribeState(t.Context(), conn, "moves", client.StateConfig[move]{})
		must(t, err)
		stream := <-joined
		time.Sleep(time.Second)
		const ticks = 150
		for i := range ticks {
			must(t, world.Begin(uint64(i+1)))
			for id := range uint16(10) {
				must(t, world.Put(id, 0, &move{X: float64(i) * float64(id)}))
				must(t, stream.Prioritize(id, 1))
			}
			world.Commit()
			must(t, stream.Send())
			time.Sleep(time.Second / 60)
		}
		time.Sleep(time.Second)
		server, cl := prometheus.NewPedanticRegistry(), prometheus.NewPedanticRegistry()
		server.MustRegister(metrics.NewServer(srv))
		cl.MustRegister(metrics.NewClient(conn))
		s, c := gather(t, server), gather(t, cl)
		st, in := stream.Stats(), view.Stats()
		if in.Unpolled == 0 || in.Messages+in.Unpolled != ticks || st.Updates <= in.Updates || in.Updates == 0 {
			t.Errorf("sent %+v, got %+v", st, in)
		}
		for name, want := range map[string]float64{
			"uplink_ds_world_players":       1,
			"uplink_ds_world_updates_total": float64(st.Updates),
			"uplink_ds_world_resets_total":  float64(st.Resets),
		} {
			if got := s.sum(name, "world=moves"); got != want {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
		if got := c.sum("uplink_client_world_updates_total", "world=moves"); got != float64(in.Updates) {
			t.Errorf("%v updates, want %d", got, in.Updates)
		}
		if got := c.sum("uplink_client_dropped_total", "rpc=moves", "reason=unpolled"); got != float64(in.Unpolled) {
			t.Errorf("%v were not polled, want %d", got, in.Unpolled)
		}
		must(t, conn.Close())
		must(t, srv.Close())
		must(t, <-served)
	})
}
