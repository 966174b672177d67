package ds_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// worldTraffic is what a client and a server send per second.
type worldTraffic struct {
	snapshots float64 // bytes
	age       float64 // mean age of their baselines, in ticks
	up        float64 // bits of the client's datagrams, with all headers
	datagrams float64 // from the client
	acks      float64
}

// playWorld calls an RPC at 60 Hz, replicates a world to the client at 60 Hz, or does both.
func playWorld(t *testing.T, objects int, loss float64, preset client.Preset, calls, world bool) (w worldTraffic) {
	t.Helper()
	const hz = 60
	const seconds = 10.0
	network := linkedBy(t, 100*ms, simnet.Config{Loss: loss, Seed: 3})
	var a *arena
	joined := make(chan *ds.Player, 1)
	cfg := ds.Config{Joined: func(p *ds.Player) { joined <- p }, Transport: ds.Transport{Suites: []transport.Suite{transport.AES128GCM, transport.AES128CTRHMAC8}}}
	srv := serve(t, network, cfg, ignores("Move"), func(s *ds.Server) error {
		a = newArena(t, s, "movers", objects, never, ds.WorldConfig[mover]{})
		return nil
	})
	conn := uplinktest.Dial(t, network, client.Config{Preset: preset})
	s := uplinktest.Bind(t, conn, "Move")
	if world {
		_, err := a.Offer(<-joined)
		uplinktest.Must(t, err)
		_, err = client.SubscribeSnapshots(t.Context(), conn, "movers", client.SnapshotConfig[mover]{})
		uplinktest.Must(t, err)
	}
	settle(time.Second)
	network.Watch(func(from, _ netip.AddrPort, b []byte) {
		if from.String() != uplinktest.Addr && uplinktest.Kind(b) == uplinktest.DataKind {
			w.up += 8 * float64(len(b)+endpoint.IPSize) / seconds
			w.datagrams += 1 / seconds
		}
	})
	before := srv.Stats().Replication[0].Bytes
	for tick := range uint64(seconds * hz) {
		a.step(tick + 1)
		w.age += float64(srv.Stats().Replication[0].BaselineAge) / seconds / hz
		time.Sleep(time.Second / hz / 2)
		if calls {
			send(t, s, 0, tick)
		}
		time.Sleep(time.Second / hz / 2)
	}
	settle(time.Second)
	w.snapshots = float64(srv.Stats().Replication[0].Bytes-before) / seconds
	for _, st := range conn.Stats().Replication {
		w.acks += float64(st.Acks) / seconds
	}
	return w
}

// TestAcksOfWorlds verifies that the acks of a world share the datagrams of RPCs, if that costs
// less than the snapshots grow because acks wait.
func TestAcksOfWorlds(t *testing.T) {
	measures(t)
	for _, c := range []struct {
		objects int
		loss    float64
		preset  client.Preset
		alone   float64 // maximum number of datagrams of acks alone per second
		larger  float64 // maximum ratio of the sizes of snapshots
	}{
		{40, 0, client.LowLatency, 1, 1},
		{40, 0.05, client.LowLatency, 2, 1},
		{40, 0, client.Balanced, 1, 1.05},
		{40, 0.05, client.Balanced, 3, 1.05},
		{40, 0, client.LowBandwidth, 4, 1.08},
		{40, 0.05, client.LowBandwidth, 2, 1.08},
		{300, 0, client.LowBandwidth, 20, 1.01},
	} {
		bubble(t, fmt.Sprintf("%d objects, loss %v, %s", c.objects, c.loss, c.preset.Name), func(t *testing.T) {
			calls := playWorld(t, 1, c.loss, c.preset, true, false)
			acks := playWorld(t, c.objects, c.loss, c.preset, false, true)
			both := playWorld(t, c.objects, c.loss, c.preset, true, true)
			t.Logf("calls alone %+v", calls)
			t.Logf("acks alone  %+v", acks)
			t.Logf("both        %+v", both)
			if n := both.datagrams - calls.datagrams; n > c.alone || both.up > calls.up+acks.up {
				t.Errorf("%.1f datagrams per second of acks alone, %.0f bits/s", n, both.up)
			}
			if both.snapshots > c.larger*acks.snapshots {
				t.Errorf("snapshots are %.3f times as large", both.snapshots/acks.snapshots)
			}
		})
	}
}
