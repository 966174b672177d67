package ds_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestPlayerStats: what is counted for each player adds up to what is counted in
// all.
func TestPlayerStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up, down := symmetric(60*ms, simnet.Config{Loss: 0.1, Jitter: 20 * ms, Seed: 70})
		network := uplinktest.NewNetwork(t, up, down)
		var players []*ds.Player
		srv := uplinktest.Serve(t, network, ds.Config{Joined: func(p *ds.Player) { players = append(players, p) }}, func(s *ds.Server) error {
			if err := ds.Handle(s, "Move", uplinktest.NewJournal(t, 1).Handle); err != nil {
				return err
			}
			return ds.Validate(s, "Move", func(_ *ds.Player, f ds.Frame[uplinktest.Move]) error {
				if f.Seq%50 == 7 {
					return errTenth
				}
				return nil
			})
		})
		for i := range 3 {
			play(t, uplinktest.Bind(t, uplinktest.Dial(t, network, client.Config{}), "Move"), 1, 0, 300*(i+1), 60)
		}
		settle(time.Second)
		r := dialRaw(t, network)
		r.say([]byte{0, 0, 0, 0})
		settle(time.Second)
		var sum ds.PlayerStats
		for i, p := range players {
			st := p.Stats()
			if i < 3 && (st.Frames < uint64(200*(i+1)) || st.Transport.RTT < 60*ms || st.Transport.DatagramsReceived < st.Frames/2 || p.Rejected() != st.Drops[ds.Rejected]) {
				t.Errorf("player %d: %+v", i, st)
			}
			sum.Frames += st.Frames
			sum.Missed += st.Missed
			for d, n := range st.Drops {
				sum.Drops[d] += n
			}
		}
		all := srv.Stats()
		for d, n := range all.RPCs[0].Drops {
			all.Drops[d] += n
		}
		if sum.Missed == 0 || sum.Missed != all.RPCs[0].Missed {
			t.Errorf("%d frames of the players are missed, %d in all", sum.Missed, all.RPCs[0].Missed)
		}
		if listed := slices.Collect(srv.Players()); len(listed) != len(players) || !holds(listed, players) {
			t.Errorf("%d players are listed, %d are there", len(listed), len(players))
		}
		if sum.Frames != all.RPCs[0].Frames() || sum.Drops != all.Drops || sum.Drops[ds.UnknownRPC] != 1 || sum.Drops[ds.Late] == 0 || sum.Drops[ds.Rejected] < 20 {
			t.Errorf("%+v, but %+v", sum, all)
		}
	})
}

// holds says whether all of some are among others.
func holds(others, some []*ds.Player) bool {
	return !slices.ContainsFunc(some, func(p *ds.Player) bool { return !slices.Contains(others, p) })
}
