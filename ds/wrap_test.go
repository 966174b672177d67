package ds_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestSequenceWraps sends more frames than a sequence on the wire has values.
func TestSequenceWraps(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	synctest.Test(t, func(t *testing.T) {
		up, down := symmetric(80*ms, simnet.Config{Loss: 0.1, Burst: 3, Jitter: 5 * ms, Duplicate: 0.05, Seed: 2})
		network := uplinktest.NewNetwork(t, up, down)
		journal := uplinktest.NewJournal(t, 2)
		srv := uplinktest.Serve(t, network, ds.Config{DeliverLate: true}, func(s *ds.Server) error {
			return ds.Handle(s, "Move", journal.Handle)
		})
		conn := uplinktest.Dial(t, network, client.Config{})
		move := uplinktest.Bind(t, conn, "Move", client.BindConfig{RateHz: 120})
		const frames = 67_000
		play(t, move, 2, 0, frames, 120)
		time.Sleep(time.Second)
		log, sent := journal.Only(), move.Stats()
		checkStats(t, srv, &log, &sent, true)
		if log.Next < frames-20 || log.Frames() < frames*85/100 || sent.Delta < frames*80/100 {
			t.Errorf("%d frames delivered up to %d, %d deltas sent", log.Frames(), log.Next, sent.Delta)
		}
	})
}

// TestLongOutage has the newest frame that the server knows lie more than half a
// turn of the short header back: the client is cut off for a while.
func TestLongOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up, down := symmetric(80*ms, simnet.Config{Seed: 3})
		network := uplinktest.NewNetwork(t, up, down)
		journal := uplinktest.NewJournal(t, 3)
		srv := uplinktest.Serve(t, network, ds.Config{}, func(s *ds.Server) error {
			return ds.Handle(s, "Move", journal.Handle)
		})
		move := uplinktest.Bind(t, uplinktest.Dial(t, network, client.Config{}), "Move")
		first := uint64(0)
		for range 5 {
			uplinktest.Must(t, network.Set(up, down))
			play(t, move, 3, first, 300, 60)
			dead := simnet.Config{Delay: up.Delay, Loss: 1}
			uplinktest.Must(t, network.Set(dead, dead))
			play(t, move, 3, first+300, 500, 60) // 8 s, less than the timeout
			first += 800
		}
		uplinktest.Must(t, network.Set(up, down))
		play(t, move, 3, first, 300, 60)
		time.Sleep(time.Second)
		log, sent := journal.Only(), move.Stats()
		checkStats(t, srv, &log, &sent, false)
		if log.Next != first+300 || log.Frames() < 6*290 || sent.Reconnecting != 0 {
			t.Errorf("%d frames delivered up to %d, want 1800 up to %d; %d times reconnecting", log.Frames(), log.Next, first+300, sent.Reconnecting)
		}
	})
}
