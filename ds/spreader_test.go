package ds_test

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestSpread measures the largest burst of a world's datagrams to 64 players, within 1 ms. All
// datagrams of a tick leave within the spread, each player's at the same time of every tick.
func TestSpread(t *testing.T) {
	measures(t)
	const players, hz, ticks = 64, 60, 30
	for _, c := range []struct {
		sendHz float64
		spread time.Duration
		over   time.Duration // the spread that results
		burst  float64       // maximum share of a tick's bytes within 1 ms
	}{
		{60, 0, time.Second / 120, 0.15},
		{60, -1, 0, 1},
		{60, time.Second / 60, time.Second / 60, 0.08},
		{20, 0, 25 * ms, 0.07},
	} {
		bubble(t, fmt.Sprint(c.sendHz, "Hz", c.spread), func(t *testing.T) {
			network := linkedBy(t, 20*ms, simnet.Config{})
			var a *arena
			srv := serve(t, network, ds.Config{Joined: func(p *ds.Player) {
				_, err := a.Offer(p)
				uplinktest.Must(t, err)
			}}, func(s *ds.Server) error {
				a = newArena(t, s, "movers", 20, never, ds.WorldConfig[mover]{SendHz: c.sendHz, Spread: c.spread})
				return nil
			})
			for range players {
				_, err := client.SubscribeSnapshots(t.Context(), uplinktest.Dial(t, network, client.Config{}), "movers", client.SnapshotConfig[mover]{})
				uplinktest.Must(t, err)
			}
			settle(time.Second)
			start := time.Now()
			var bytes [players * 2]int // by the ms since the start of the tick
			offsets := map[netip.AddrPort]time.Duration{}
			network.Watch(func(from, to netip.AddrPort, b []byte) {
				if from.String() != uplinktest.Addr || uplinktest.Kind(b) != uplinktest.DataKind {
					return
				}
				offset := time.Since(start)
				bytes[offset/ms] += len(b) + endpoint.IPSize
				if before, ok := offsets[to]; ok && before != offset {
					t.Errorf("a datagram leaves %v after the start of a tick, the last one %v", offset, before)
				}
				offsets[to] = offset
			})
			every := uint64(hz / c.sendHz)
			for tick := every; tick <= every*ticks; tick += every {
				synctest.Wait() // nothing leaves
				start = time.Now()
				if n := a.step(tick); n != players {
					t.Fatalf("sent to %d players", n)
				}
				time.Sleep(time.Duration(every) * time.Second / hz)
			}
			settle(time.Second)
			most, sum, last := 0, 0, time.Duration(0)
			for i, n := range bytes {
				if sum += n; n > 0 {
					last = time.Duration(i) * ms
				}
				most = max(most, n)
			}
			share := float64(most) / float64(sum)
			t.Logf("%.0f bytes a tick, at most %.0f within 1 ms", float64(sum)/ticks, float64(most)/ticks)
			if len(offsets) != players || share > c.burst || last > c.over || last < c.over-2*ms {
				t.Errorf("datagrams to %d players leave over %v, %.3f of a tick's bytes within 1 ms", len(offsets), last, share)
			}
			if st := srv.Stats().Replication[0]; st.Messages != players*ticks {
				t.Errorf("%d messages", st.Messages)
			}
		})
	}
}

// TestSpreadInBatches verifies that the datagrams that leave in the same millisecond of a tick are
// written together.
func TestSpreadInBatches(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		const players, ticks, portions = 100, 30, 9 // of half a tick, 8.3 ms
		network := &batches{Network: perfect(t)}
		var a *arena
		serve(t, network, ds.Config{Joined: func(p *ds.Player) {
			_, err := a.Offer(p)
			uplinktest.Must(t, err)
		}}, func(s *ds.Server) error {
			a = newArena(t, s, "movers", 3, never, ds.WorldConfig[mover]{})
			return nil
		})
		for range players {
			_, err := client.SubscribeSnapshots(t.Context(), uplinktest.Dial(t, network.Network, client.Config{}), "movers", client.SnapshotConfig[mover]{})
			uplinktest.Must(t, err)
		}
		settle(time.Second)
		network.count = true
		a.run(1, ticks)
		settle(time.Second)
		t.Logf("%d batches with at least 5 datagrams, which have %d", network.writes, network.datagrams)
		if network.datagrams < 0.95*players*ticks || network.writes > 1.1*portions*ticks {
			t.Errorf("%d of %d datagrams in %d batches, want at most %d", network.datagrams, players*ticks, network.writes, portions*ticks)
		}
	})
}

// batches is a network that counts the batches of at least 5 datagrams of a server.
type batches struct {
	*uplinktest.Network
	count             bool
	mu                sync.Mutex
	writes, datagrams int
}

func (n *batches) ListenShards(addr string, count int) ([]transport.PacketConn, error) {
	pcs, err := n.Network.ListenShards(addr, count)
	for i := range pcs {
		pcs[i] = &batchSocket{pcs[i], n}
	}
	return pcs, err
}

type batchSocket struct {
	transport.PacketConn
	network *batches
}

func (s *batchSocket) ReadBatch(into []transport.Datagram) (n int, err error) {
	if into[0].N, into[0].Addr, err = s.ReadFrom(into[0].Buf); err != nil {
		return 0, err
	}
	return 1, nil
}

func (s *batchSocket) WriteBatch(out []transport.Datagram) (int, error) {
	s.network.mu.Lock()
	if s.network.count && len(out) >= 5 {
		s.network.writes++
		s.network.datagrams += len(out)
	}
	s.network.mu.Unlock()
	for i := range out {
		if _, err := s.WriteTo(out[i].Bytes(), out[i].Addr); err != nil {
			return i, err
		}
	}
	return len(out), nil
}

// TestSpreadEnds verifies that the end of a server waits for no datagram, and that one player's
// datagrams leave during Send.
func TestSpreadEnds(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		network := perfect(t)
		a, srv, joined := serveArena(t, network, 5, never, ds.WorldConfig[mover]{TickHz: 1})
		for n := range 2 {
			conn := uplinktest.Dial(t, network, client.Config{})
			_, err := a.Offer(<-joined)
			uplinktest.Must(t, err)
			_, err = client.SubscribeSnapshots(t.Context(), conn, "movers", client.SnapshotConfig[mover]{})
			uplinktest.Must(t, err)
			settle(time.Second)
			before := srv.Stats().Replication[0].Messages
			a.step(uint64(n + 1))
			if sent := srv.Stats().Replication[0].Messages - before; sent != 1 {
				t.Errorf("%d messages to %d players during Send", sent, n+1)
			}
		}
		start := time.Now()
		uplinktest.Must(t, srv.Close())
		if d := time.Since(start); d > 10*ms {
			t.Errorf("closed after %v", d)
		}
		_, err := a.Send()
		uplinktest.Must(t, err)
	})
}
