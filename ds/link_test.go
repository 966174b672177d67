package ds_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// play sends frames first to first+n-1, all of which must be taken.
func play(t *testing.T, s *client.Stream[uplinktest.Move], salt, first uint64, n int, hz time.Duration) {
	t.Helper()
	for i := range uint64(n) {
		m := uplinktest.MoveAt(salt, first+i)
		uplinktest.Must(t, s.Send(&m))
		time.Sleep(time.Second / hz)
	}
}

// settle lets virtual time pass; what happened until then can be read.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// symmetric gives a link's two directions with half the round trip each.
func symmetric(rtt time.Duration, c simnet.Config) (up, down simnet.Config) {
	c.Delay = rtt / 2
	down = c
	down.Seed++
	return c, down
}

const ms = time.Millisecond

// thin is a step through all there is of something: with -short most of it is left out. One that is prime to what
// is crossed meets all of it.
func thin(step int) int {
	if testing.Short() {
		return step
	}
	return 1
}

// TestLinks plays virtual minutes over links that lose, delay, reorder and
// duplicate in both directions, with rings of all sizes at either end.
func TestLinks(t *testing.T) {
	n := 0
	for _, c := range []struct {
		rtt            time.Duration
		link           simnet.Config
		client, server int // rings
		ackHz          float64
		late           bool
		delivered      float64 // least share of frames, each sent once
		least          float64 // least share of deltas
		intra          bool    // no deltas
	}{
		{rtt: 20 * ms, client: 64, server: 64, delivered: 1, least: 0.99},
		// At this age a delta is not always the shorter one.
		{rtt: 300 * ms, client: 64, server: 64, delivered: 1, least: 0.85},
		{rtt: 300 * ms, client: 256, server: 256, ackHz: 10, delivered: 1, least: 0.85},
		{rtt: 100 * ms, link: simnet.Config{Loss: 0.05}, client: 64, server: 64, delivered: 0.93, least: 0.98},
		{rtt: 100 * ms, link: simnet.Config{Loss: 0.05, Jitter: 10 * ms}, client: 64, server: 64, delivered: 0.8, least: 0.98},
		{rtt: 100 * ms, link: simnet.Config{Loss: 0.05, Jitter: 10 * ms}, client: 64, server: 64, late: true, delivered: 0.93, least: 0.98},
		{rtt: 50 * ms, link: simnet.Config{Loss: 0.2, Burst: 5, Duplicate: 0.2}, client: 64, server: 32, delivered: 0.75, least: 0.8},
		{rtt: 150 * ms, link: simnet.Config{Loss: 0.5}, client: 64, server: 256, delivered: 0.45, least: 0.8},
		{rtt: 150 * ms, link: simnet.Config{Loss: 0.5, Burst: 10, Jitter: 30 * ms, Duplicate: 0.5}, client: 256, server: 64, late: true, delivered: 0.42, least: 0.35},
		{rtt: 300 * ms, link: simnet.Config{Loss: 0.3, Jitter: 40 * ms}, client: 64, server: 64, ackHz: 60, delivered: 0.4, least: 0.7},
		// Jitter of many frames: some datagrams come after 64 newer ones.
		{rtt: 20 * ms, link: simnet.Config{Jitter: 400 * ms}, client: 256, server: 256, late: true, delivered: 0.9, least: 0.7},
		// Rings below the round trip: no delta, but never silence.
		{rtt: 20 * ms, client: 2, server: 64, delivered: 1, intra: true},
		{rtt: 20 * ms, client: 64, server: 2, delivered: 1, intra: true},
		{rtt: 100 * ms, link: simnet.Config{Loss: 0.1}, client: 2, server: 2, late: true, delivered: 0.85, intra: true},
		{rtt: 200 * ms, link: simnet.Config{Loss: 0.1}, client: 12, server: 256, delivered: 0.85, intra: true},
		{rtt: 200 * ms, link: simnet.Config{Jitter: 20 * ms}, client: 256, server: 12, delivered: 0.7, intra: true},
		// Rings on the edge, where lost acks make the difference.
		{rtt: 100 * ms, link: simnet.Config{Loss: 0.2}, client: 12, server: 12, delivered: 0.75, least: 0.5},
	} {
		name := fmt.Sprintf("rtt=%v/loss=%v/burst=%v/jitter=%v/duplicate=%v/rings=%d,%d/late=%v",
			c.rtt, c.link.Loss, c.link.Burst, c.link.Jitter, c.link.Duplicate, c.client, c.server, c.late)
		for _, redundancy := range []int{rpcdelta.RedundancyOff, rpcdelta.RedundancyAuto} {
			if n++; n%thin(5) != 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s/redundancy=%d", name, redundancy), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					frames := 2 * 60 * 60
					if testing.Short() {
						frames /= 4
					}
					up, down := symmetric(c.rtt, c.link)
					network := uplinktest.NewNetwork(t, up, down)
					journal := uplinktest.NewJournal(t, 1)
					srv := uplinktest.Serve(t, network, ds.Config{Ring: c.server, AckHz: c.ackHz, DeliverLate: c.late}, func(s *ds.Server) error {
						return ds.Handle(s, "Move", journal.Handle)
					})
					conn := uplinktest.Dial(t, network, client.Config{Ring: c.client, Redundancy: redundancy})
					move := uplinktest.Bind(t, conn, "Move")
					play(t, move, 1, 0, frames, 60)
					time.Sleep(3 * time.Second)

					log, sent := journal.Only(), move.Stats()
					got := checkStats(t, srv, &log, &sent, c.late)
					if off := redundancy == rpcdelta.RedundancyOff; off && (got.Messages != got.Frames() || got.Delta > sent.Delta || got.Keyframe+got.Reset > sent.Keyframe+sent.Reset) {
						t.Errorf("server counts %+v, the client %+v", got, sent)
					}
					if sent.Frames() != uint64(frames) {
						t.Errorf("%d frames counted as sent, want %d", sent.Frames(), frames)
					}
					delivered, deltas := float64(log.Frames())/float64(frames), float64(sent.Delta)/float64(frames)
					t.Logf("delivered %.3f, deltas %.3f, late %d, missed %d, drops %v", delivered, deltas, log.Late, log.Missed, got.Drops)
					if delivered < c.delivered {
						t.Errorf("%.3f of the frames were delivered, want at least %v", delivered, c.delivered)
					}
					if deltas < c.least || c.intra && deltas > 0.01 {
						t.Errorf("%.3f of the frames are deltas", deltas)
					}
				})
			})
		}
	}
}

// checkStats holds the server's counts of its only RPC against what was
// delivered and sent.
func checkStats(t *testing.T, srv *uplinktest.Server, log *uplinktest.Log, sent *client.RPCStats, late bool) ds.RPCStats {
	t.Helper()
	if log.Frames()+log.Missed != log.Next {
		t.Errorf("%d frames delivered and %d missed of %d", log.Frames(), log.Missed, log.Next)
	}
	got := srv.Stats().RPCs[0]
	if got.Frames() != log.Frames() || got.Missed != log.Missed || got.LateFrames != log.Late || got.Messages > log.Frames() {
		t.Errorf("server counts %+v, but %d frames were delivered, %d missed, %d late", got, log.Frames(), log.Missed, log.Late)
	}
	if !late && got.LateFrames != 0 {
		t.Errorf("%d frames were delivered late", got.LateFrames)
	}
	for d, n := range got.Drops {
		if d := ds.Drop(d); n != 0 && d != ds.Late && d != ds.Duplicate {
			t.Errorf("%d payloads dropped as %v", n, d)
		}
	}
	if got.Frames() > sent.Frames() || got.Bytes > sent.Bytes || got.FullBits > sent.FullBits || got.PayloadBits > sent.PayloadBits || got.HeaderBits > sent.HeaderBits {
		t.Errorf("server counts %+v, more than the client's %+v", got.Stats, sent.Stats)
	}
	return got
}
