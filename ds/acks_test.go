package ds_test

import (
	"fmt"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// manyMoves starts a server of several RPCs, and binds them.
func manyMoves(t *testing.T, network *uplinktest.Network, cfg ds.Config, rpcs int) (srv *uplinktest.Server, conn *client.Conn, streams []stream) {
	t.Helper()
	var setups []setup
	for i := range rpcs {
		setups = append(setups, ignores(fmt.Sprint(i)))
	}
	srv = serve(t, network, cfg, setups...)
	conn = uplinktest.Dial(t, network, client.Config{})
	for i := range rpcs {
		streams = append(streams, uplinktest.Bind(t, conn, fmt.Sprint(i)))
	}
	return srv, conn, streams
}

// TestAckRate verifies that the acks of all RPCs of a player share a datagram, and are sent at the
// configured rate or after every fourteenth payload, whichever is rarer.
func TestAckRate(t *testing.T) {
	measures(t)
	for _, hz := range []float64{1, 7.5, 10, 20, 60, 144} {
		bubble(t, fmt.Sprintf("%v Hz", hz), func(t *testing.T) {
			const rpcs, seconds, rate = 3, 30, 140
			network := linkedBy(t, 50*ms, simnet.Config{Seed: 5})
			srv, conn, streams := manyMoves(t, network, ds.Config{Tuning: ds.Tuning{AckHz: hz}}, rpcs)
			var acks, heartbeats atomic.Int64
			network.Watch(func(from, _ netip.AddrPort, b []byte) {
				switch {
				case from.String() != uplinktest.Addr:
				case len(b) == wire.ShortSize+wire.ReportSize+transport.AES128GCM.Overhead() && b[0] < 1<<3: // a report alone
				case uplinktest.Kind(b) == uplinktest.DataKind:
					acks.Add(1)
				default:
					heartbeats.Add(1)
				}
			})
			for n := range uint64(seconds * rate) {
				for i, s := range streams {
					send(t, s, uint64(i), n)
				}
				time.Sleep(time.Second / rate)
			}
			seen := acks.Load()
			if want := min(hz, rate/14) * seconds; float64(seen) < 0.97*want || float64(seen) > 1.02*want+1 {
				t.Errorf("%d datagrams of acks in half a minute, want %v", seen, want)
			}
			if n := heartbeats.Load(); n < seconds-2 || n > seconds+10 { // answers to probes among them
				t.Errorf("%d heartbeats in half a minute", n)
			}
			time.Sleep(2 * time.Second)
			sent, got := srv.Stats().Acks, conn.Stats().Acks.Bytes
			if int64(sent.Messages) < seen || got != sent.Bytes {
				t.Errorf("%+v sent, %d datagrams seen, %d bytes arrived", sent, seen, got)
			}
			if each := float64(got) / float64(sent.Messages) / rpcs; hz >= 7.5 && each > 4.5 {
				t.Errorf("%.2f bytes an ack", each)
			}
		})
	}
}

// TestAcksOfManyRPCs verifies that each RPC is acked if the acks do not fit into one datagram.
func TestAcksOfManyRPCs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rpcs = 256
		_, conn, streams := manyMoves(t, linkedBy(t, 20*ms, simnet.Config{Seed: 6}), ds.Config{}, rpcs)
		if _, err := client.Bind[move](t.Context(), conn, "0", client.BindConfig{}); err == nil {
			t.Error("257 RPCs were bound")
		}
		for n := range uint64(60 / thin(4)) {
			for _, s := range streams {
				send(t, s, 0, n)
			}
			time.Sleep(time.Second / 60)
		}
		before := conn.Stats().Acks.Bytes
		time.Sleep(time.Second)
		if conn.Stats().Acks.Bytes-before > 2*5*rpcs {
			t.Error("acks go on though nothing is sent")
		}
		for i, s := range streams {
			if st := s.Stats(); st.Reset > 10 {
				t.Errorf("RPC %d was not acked for long: %+v", i, st)
			}
		}
	})
}

// TestPiggybackedAcks verifies that acks travel with the messages of a world, and alone when there
// are none. One datagram of acks alone may precede the first message, and one follow the last.
func TestPiggybackedAcks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const seconds = 10
		network := linkedBy(t, 100*ms, simnet.Config{Loss: 0.02, Seed: 7})
		joined := make(chan *ds.Player, 1)
		var w *ds.World[mover]
		srv := serve(t, network, ds.Config{Joined: func(p *ds.Player) { joined <- p }}, ignores("0"), func(s *ds.Server) (err error) {
			w, err = ds.NewWorld(s, "movers", ds.WorldConfig[mover]{})
			return err
		})
		conn := uplinktest.Dial(t, network, client.Config{})
		s := uplinktest.Bind(t, conn, "0")
		_, err := w.Offer(<-joined)
		uplinktest.Must(t, err)
		_, err = client.SubscribeSnapshots(t.Context(), conn, "movers", client.SnapshotConfig[mover]{Handle: func(*client.Snapshot[mover]) {}})
		uplinktest.Must(t, err)
		settle(time.Second)
		run := func(world bool) (endpoint.Acks, client.RPCStats) {
			before, sent := srv.Stats().Acks, s.Stats()
			for n := range uint64(seconds * 60) {
				if world && n%2 == 0 {
					uplinktest.Must(t, w.Begin(n))
					w.Commit()
					_, err := w.Send()
					uplinktest.Must(t, err)
				}
				send(t, s, 0, n)
				time.Sleep(time.Second / 60)
			}
			settle(time.Second)
			after := srv.Stats().Acks
			after.Messages -= before.Messages
			after.Piggybacked -= before.Piggybacked
			now := s.Stats()
			now.Delta -= sent.Delta
			return after, now
		}
		if acks, st := run(true); acks.Messages > 2 || acks.Piggybacked < 6*seconds || st.Delta < 58*seconds {
			t.Errorf("with a world: %+v, %d deltas", acks, st.Delta)
		}
		if acks, _ := run(false); acks.Piggybacked != 0 || acks.Messages < 4*seconds || acks.Messages > 5*seconds {
			t.Errorf("without: %+v", acks)
		}
		if sent, got := srv.Stats().Acks.Bytes, conn.Stats().Acks.Bytes; got > sent || got < sent*9/10 {
			t.Errorf("%d bytes of acks sent, %d received", sent, got)
		}
	})
}
