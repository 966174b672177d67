package ds_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// lossy returns a network with a round-trip time of 100 ms, 5 % packet loss and reordering.
func lossy(t testing.TB) *uplinktest.Network {
	up, down := symmetric(100*ms, simnet.Config{Loss: 0.05, Jitter: 10 * ms})
	return uplinktest.NewNetwork(t, up, down)
}

// stages starts a server that offers worlds to each player.
func stages(t *testing.T, network *uplinktest.Network, cfg ds.Config, make func(*ds.Server) []*stage) (*uplinktest.Server, []*stage) {
	t.Helper()
	var all []*stage
	if cfg.Joined == nil {
		cfg.Joined = func(p *ds.Player) {
			for _, s := range all {
				offerAll(t, s.World)(p)
			}
		}
	}
	srv := uplinktest.Serve(t, network, cfg, func(s *ds.Server) error {
		all = make(s)
		return nil
	})
	return srv, all
}

// run makes ticks first to last of all stages.
func run(t *testing.T, all []*stage, first, last uint64) {
	t.Helper()
	for tick := first; tick <= last; tick++ {
		for _, s := range all {
			s.step(t, tick)
		}
		time.Sleep(time.Second / 60)
	}
}

// TestTwoWorlds offers two worlds to two players. One subscribes to both; the other joins later.
func TestTwoWorlds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := lossy(t)
		srv, all := stages(t, network, ds.Config{}, func(s *ds.Server) []*stage {
			return []*stage{
				newStage(t, s, "near", 1, 40, ds.WorldConfig[orb]{Initial: initial(1, 40)}),
				newStage(t, s, "far", 2, 30, ds.WorldConfig[orb]{SendHz: 20}),
			}
		})
		take := func(c *client.Conn, s *stage, name string) *watcher {
			w := newWatcher(t, s)
			_, err := client.SubscribeSnapshots(t.Context(), c, name, client.SnapshotConfig[orb]{Handle: w.check})
			uplinktest.Must(t, err)
			return w
		}
		both := uplinktest.Dial(t, network, client.Config{})
		one, two := take(both, all[0], "near"), take(both, all[1], "far")
		run(t, all, 1, 120)
		late := uplinktest.Dial(t, network, client.Config{})
		three := take(late, all[0], "near")
		run(t, all, 121, 300)
		settle(time.Second)
		for name, got := range map[string]int{"one": len(one.ticks()) - 300 + 30, "two": len(two.ticks()) - 300 + 30, "late": len(three.ticks()) - 180 + 30} {
			if got < 0 {
				t.Errorf("%s: %d snapshots too few", name, -got)
			}
		}
		st := srv.Stats().Replication
		if len(st) != 2 || st[0].Name != "far" || st[0].Players != 2 || st[0].Ready != 1 || st[1].Ready != 2 {
			t.Errorf("%+v", st)
		}
		if c := both.Stats().Replication; len(c) != 2 || c[0].Name != "near" || c[0].Messages != uint64(len(one.ticks())) {
			t.Errorf("the client counts %+v", c)
		}
	})
}

// TestReconnect checks that the view continues after the server has crashed and restarted with its
// world at another tick.
func TestReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := lossy(t)
		serve := func() (*uplinktest.Server, []*stage) {
			return stages(t, network, ds.Config{}, func(s *ds.Server) []*stage {
				return []*stage{newStage(t, s, "orbs", 0, 60, ds.WorldConfig[orb]{Initial: initial(0, 60)})}
			})
		}
		_, all := serve()
		w := newWatcher(t, all[0])
		conn := uplinktest.Dial(t, network, client.Config{})
		v, err := client.SubscribeSnapshots(t.Context(), conn, "orbs", client.SnapshotConfig[orb]{Handle: w.check, Interpolate: &interpolate.Config{}})
		uplinktest.Must(t, err)
		run(t, all, 1, 200)
		first := v.Stats()
		network.Crash(t, uplinktest.Addr)
		settle(time.Second)
		_, all = serve()
		w.mu.Lock()
		w.stage, w.came, w.newest = all[0], map[uint64]bool{}, 0
		w.mu.Unlock()
		settle(5 * time.Second)
		run(t, all, 1, 200)
		settle(time.Second)
		if got := len(w.ticks()); got < 170 {
			t.Errorf("%d snapshots came after the crash", got)
		}
		if st := v.Stats(); st.InitialBytes != first.InitialBytes || first.InitialBytes == 0 || st.Messages < first.Messages+170 {
			t.Errorf("before %+v, then %+v", first, st)
		}
		var s interpolate.Sample[orb]
		if !v.Sample(time.Now(), &s) || s.Time < time.Second || s.Time > 6*time.Second {
			t.Errorf("%v is shown", s.Time)
		}
		uplinktest.Must(t, v.Err())
	})
}

// stranger differs from orb in one field.
type stranger struct {
	Position schema.Vec3 `uplink:"resolution=0.02,min=-1000,max=1000"`
}

// TestSnapshotsRefused checks the errors of subscriptions that fail, and that the server sends
// nothing.
func TestSnapshotsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := lossy(t)
		srv, all := stages(t, network, ds.Config{}, func(s *ds.Server) []*stage {
			return []*stage{newStage(t, s, "orbs", 0, 60, ds.WorldConfig[orb]{})}
		})
		conn := uplinktest.Dial(t, network, client.Config{})
		var differs *client.WorldError
		_, err := client.SubscribeSnapshots(t.Context(), conn, "orbs", client.SnapshotConfig[stranger]{})
		if !errors.As(err, &differs) || differs.Field != 0 || !strings.Contains(differs.There, "0.01") || !strings.Contains(differs.Here, "0.02") {
			t.Errorf("another schema: %v", err)
		}
		t.Log(err)
		settle(time.Second)
		if st := srv.Stats().Replication[0]; st.Players != 1 || st.Ready != 0 {
			t.Errorf("refused: %+v", st)
		}
		_, err = client.SubscribeSnapshots(t.Context(), conn, "orb", client.SnapshotConfig[orb]{})
		if !errors.Is(err, client.ErrNotOffered) || !strings.Contains(err.Error(), "orbs") {
			t.Errorf("another name: %v", err)
		}
		t.Log(err)
		if n := all[0].step(t, 1); n != 0 {
			t.Errorf("sent to %d", n)
		}
		if _, err := client.SubscribeSnapshots(t.Context(), conn, "orbs", client.SnapshotConfig[orb]{AckHz: -1}); err == nil {
			t.Error("a negative rate")
		}
	})
}

// TestStop ends a stream at the server and the subscription at the client in turn. Each time the
// client subscribes again.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := lossy(t)
		var player *ds.Player
		srv, all := stages(t, network, ds.Config{Joined: func(p *ds.Player) { player = p }}, func(s *ds.Server) []*stage {
			return []*stage{newStage(t, s, "orbs", 0, 10, ds.WorldConfig[orb]{})}
		})
		conn := uplinktest.Dial(t, network, client.Config{})
		settle(time.Second)
		sent := uint64(0)
		for round := range uint64(20) {
			s, err := all[0].Offer(player)
			uplinktest.Must(t, err)
			w := newWatcher(t, all[0])
			v, err := client.SubscribeSnapshots(t.Context(), conn, "orbs", client.SnapshotConfig[orb]{Handle: w.check})
			uplinktest.Must(t, err)
			settle(time.Second)
			run(t, all, 1000*round+1, 1000*round+10)
			if round%2 == 0 {
				s.Stop()
			} else {
				uplinktest.Must(t, v.Close())
			}
			settle(time.Second)
			if n := all[0].step(t, 1000*round+11); n != 0 {
				t.Errorf("round %d: sent to %d", round, n)
			}
			uplinktest.Must(t, v.Close())
			settle(time.Second)
			if st := s.Stats(); st.Ready != 0 || s.Ready() || s.Send() == nil {
				t.Errorf("round %d: %+v", round, st)
			}
			if got := v.Stats().Messages; got < 5 || got != uint64(len(w.ticks())) {
				t.Errorf("round %d: %d came", round, got)
			}
			sent += 10
		}
		if st := srv.Stats().Replication[0]; st.Messages != sent || st.Players != 1 || st.InvalidAcks != 0 {
			t.Errorf("%+v", st)
		}
		player.Kick("enough")
		settle(time.Second)
		if st := srv.Stats().Replication[0]; st.Messages != sent || st.Players != 0 {
			t.Errorf("after the end: %+v", st)
		}
	})
}
