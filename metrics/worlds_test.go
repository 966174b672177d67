package metrics_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/scrape"
	"github.com/uplink-rpc/uplink/metrics"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// offered is a server that offers a world of ten objects to each player, and a connection to it.
type offered struct {
	world *ds.World[move]
	srv   *ds.Server
	conn  *client.Conn
}

func newOffered(t *testing.T, loss float64, offer func(*ds.World[move], *ds.Player)) *offered {
	t.Helper()
	network := uplinktest.NewNetwork(t, simnet.Config{}, simnet.Config{Delay: 10 * time.Millisecond, Loss: loss, Seed: 1})
	var o offered
	cfg := ds.Config{Joined: func(p *ds.Player) { offer(o.world, p) }}
	o.srv = uplinktest.Serve(t, network, cfg, func(s *ds.Server) (err error) {
		o.world, err = ds.NewWorld(s, "moves", ds.WorldConfig[move]{})
		return err
	}).Server
	o.conn = uplinktest.Dial(t, network, client.Config{})
	return &o
}

// run commits ticks at 60 Hz and calls send after each.
func (o *offered) run(t *testing.T, ticks int, send func()) {
	t.Helper()
	time.Sleep(time.Second)
	for i := range ticks {
		must(t, o.world.Begin(uint64(i+1)))
		for id := range uint16(10) {
			must(t, o.world.Put(id, 0, &move{X: float64(i) * float64(id)}))
		}
		o.world.Commit()
		send()
		time.Sleep(time.Second / 60)
	}
	time.Sleep(time.Second)
}

// compare gathers the metrics of both endpoints and checks the sums for the world.
func (o *offered) compare(t *testing.T, unpolled float64, want map[string]float64) {
	t.Helper()
	v := scrape.Collect(t, metrics.NewServer(o.srv), metrics.NewClient(o.conn))
	for name, n := range want {
		if got := v.Sum(name, "world=moves"); got != n {
			t.Errorf("%s is %v, want %v", name, got, n)
		}
	}
	for reason, n := range map[string]float64{"late": 0, "desync": 0, "unpolled": unpolled} {
		if got := v.Sum("uplink_client_dropped_total", "rpc=moves", "channel=replication", "reason="+reason); got != n {
			t.Errorf("%v drops with reason %s, want %v", got, reason, n)
		}
	}
}

// TestSnapshotMetrics checks the counts of a world that is replicated by snapshots, with packet
// loss.
func TestSnapshotMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffered(t, 0.2, func(w *ds.World[move], p *ds.Player) {
			_, err := w.Offer(p)
			must(t, err)
		})
		view, err := client.SubscribeSnapshots(t.Context(), o.conn, "moves", client.SnapshotConfig[move]{})
		must(t, err)
		const ticks = 100
		o.run(t, ticks, func() {
			_, err := o.world.Send()
			must(t, err)
		})
		received := float64(view.Stats().Messages)
		if received < ticks/2 || received == ticks {
			t.Errorf("%v of %v messages received", received, ticks)
		}
		o.compare(t, 0, map[string]float64{
			"uplink_ds_world_messages_total": ticks, "uplink_ds_world_ticks_total": ticks, "uplink_ds_world_encodings_total": ticks, "uplink_ds_world_players": 1, "uplink_ds_world_acked_messages_total": received,
			"uplink_ds_world_datagrams_total": ticks, "uplink_ds_world_updates_total": 0, "uplink_client_world_messages_total": received,
		})
	})
}

// TestStateMetrics checks the counts of a world that is replicated by state synchronization,
// without calls of Poll.
func TestStateMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		streams := make(chan *ds.StateStream, 1)
		o := newOffered(t, 0, func(w *ds.World[move], p *ds.Player) {
			s, err := w.OfferState(p, ds.StateConfig{})
			must(t, err)
			streams <- s
		})
		view, err := client.SubscribeState(t.Context(), o.conn, "moves", client.StateConfig[move]{})
		must(t, err)
		stream := <-streams
		const ticks = 150
		o.run(t, ticks, func() {
			for id := range uint16(10) {
				must(t, stream.Prioritize(id, 1))
			}
			must(t, stream.Send())
		})
		st, in := stream.Stats(), view.Stats()
		if in.Unpolled == 0 || in.Messages+in.Unpolled != ticks || st.Updates <= in.Updates || in.Updates == 0 {
			t.Errorf("sent %+v, received %+v", st, in)
		}
		o.compare(t, float64(in.Unpolled), map[string]float64{
			"uplink_ds_world_players": 1, "uplink_ds_world_updates_total": float64(st.Updates), "uplink_ds_world_resets_total": float64(st.Resets),
			"uplink_client_world_updates_total": float64(in.Updates),
		})
	})
}
