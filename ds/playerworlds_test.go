package ds_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// worldOf returns a player's only stream, as in its statistics.
func worldOf(t *testing.T, p *ds.Player) ds.ReplicationStats {
	t.Helper()
	all := p.Stats().Replication
	if len(all) != 1 {
		t.Fatalf("%d streams", len(all))
	}
	return all[0]
}

// TestPlayersWorld checks the statistics of two players who share the encodings of a world, one of
// whom then does not hear the server any more.
func TestPlayersWorld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := linkedBy(t, 60*ms, simnet.Config{})
		const objects = 30
		a, srv, joined := serveArena(t, network, objects, never, ds.WorldConfig[mover]{Spread: -1})
		var players []*ds.Player
		for range 2 {
			conn := uplinktest.Dial(t, network, client.Config{})
			p := <-joined
			_, err := a.Offer(p)
			uplinktest.Must(t, err)
			players = append(players, p)
			_, err = client.SubscribeSnapshots(t.Context(), conn, "movers", client.SnapshotConfig[mover]{AckHz: 60})
			uplinktest.Must(t, err)
		}
		settle(time.Second)
		a.run(1, 300)
		for i, p := range players {
			st := worldOf(t, p)
			mean := float64(st.Sharing) / float64(st.Messages)
			if st.Name != "movers" || st.TickHz != 60 || st.Ready != 1 || st.Waiting != 0 || st.Objects < objects/2 || st.Objects > objects {
				t.Errorf("player %d: %+v", i, st)
			}
			if mean < 1.9 || mean > 2 || st.Keyframes < 1 || st.Keyframes > 10 || st.BaselineAge < 3 || st.BaselineAge > 8 || st.AckAge > 3 {
				t.Errorf("player %d: %.2f share an encoding, %d keyframes, baseline of %d ticks, ack of %d ticks", i, mean, st.Keyframes, st.BaselineAge, st.AckAge)
			}
		}
		all := srv.Stats().Replication[0]
		if one := worldOf(t, players[0]); all.Objects < one.Objects+objects/2 || all.Sharing < 3*one.Messages || all.Ready != 2 {
			t.Errorf("%+v in all", all)
		}
		deaf := simnet.Config{Loss: 1, Delay: 30 * ms}
		uplinktest.Must(t, network.Set(simnet.Config{Delay: 30 * ms}, deaf))
		a.run(301, 400)
		if st := worldOf(t, players[0]); st.AckAge < 90 || st.AckAge > 100 {
			t.Errorf("the client has acked nothing for %d ticks, want about 95", st.AckAge)
		}
		uplinktest.Must(t, network.Set(simnet.Config{Delay: 30 * ms}, simnet.Config{Delay: 30 * ms}))
		a.run(401, 800)
		if st := worldOf(t, players[0]); st.AckAge > 10 {
			t.Errorf("the client acks again, but nothing for %d ticks", st.AckAge)
		}
	})
}

// TestWaitingObjects checks how many objects wait: those that enter a view when there is room for
// few, and those of state within a narrow bandwidth.
func TestWaitingObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const objects = 200
		network := linkedBy(t, 60*ms, simnet.Config{})
		joined := make(chan *ds.Player, 1)
		var world *ds.World[mover]
		serve(t, network, ds.Config{Joined: func(p *ds.Player) { joined <- p }}, func(s *ds.Server) (err error) {
			world, err = ds.NewWorld(s, "town", ds.WorldConfig[mover]{Areas: true, EnterBytes: 64})
			return err
		})
		conn := uplinktest.Dial(t, network, client.Config{})
		p := <-joined
		stream, err := world.Offer(p)
		uplinktest.Must(t, err)
		stream.See(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
		_, err = client.SubscribeSnapshots(t.Context(), conn, "town", client.SnapshotConfig[mover]{})
		uplinktest.Must(t, err)
		settle(time.Second)
		before, waited := math.MaxInt, 0
		for tick := uint64(1); tick <= 120; tick++ {
			uplinktest.Must(t, world.Begin(tick))
			for i := range objects {
				m := moverAt(i, tick, never)
				uplinktest.Must(t, world.Put(uint16(i), 0, &m, area.ID(1+i%10)))
			}
			world.Commit()
			_, err := world.Send()
			uplinktest.Must(t, err)
			settle(time.Second / 60)
			st := worldOf(t, p)
			if st.Messages > 0 && (st.Objects+st.Waiting != objects || st.Waiting > before) {
				t.Fatalf("tick %d: %d objects, %d wait, %d waited before", tick, st.Objects, st.Waiting, before)
			}
			before, waited = st.Waiting, max(waited, st.Waiting)
		}
		if waited < objects/2 || before != 0 {
			t.Errorf("up to %d waited, %d still do", waited, before)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		const objects = 200
		network := linkedBy(t, 60*ms, simnet.Config{})
		a, _, joined := serveArena(t, network, objects, never, ds.WorldConfig[mover]{})
		conn := uplinktest.Dial(t, network, client.Config{})
		p := <-joined
		stream := a.offer(p, ds.StateConfig{Bandwidth: 8_000})
		_, err := client.SubscribeState(t.Context(), conn, "movers", client.StateConfig[mover]{Handle: func(*client.StateUpdate[mover]) {}})
		uplinktest.Must(t, err)
		settle(time.Second)
		a.run(1, 300)
		starved := worldOf(t, p)
		uplinktest.Must(t, stream.SetBandwidth(4_000_000, 0))
		a.run(301, 600)
		if st := worldOf(t, p); starved.Waiting < objects/4 || st.Waiting != 0 || st.Objects < objects/2 || st.Sharing != st.Messages {
			t.Errorf("%d objects wait at 8 kbit/s, %d of %d at 4 Mbit/s", starved.Waiting, st.Waiting, st.Objects)
		}
	})
}
