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
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestManyRPCs lets several clients call more RPCs than short headers can number.
func TestManyRPCs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients, rpcs = 3, 12
		frames := 600 / thin(3)
		network := linkedBy(t, 60*ms, simnet.Config{Loss: 0.1, Jitter: 3 * ms, Seed: 4})
		var journals [rpcs]*uplinktest.Journal
		srv := uplinktest.Serve(t, network, ds.Config{}, func(s *ds.Server) error {
			for i := range journals {
				journals[i] = uplinktest.NewJournal(t, uint64(i))
				if err := ds.Handle(s, fmt.Sprintf("Move%02d", i), journals[i].Handle); err != nil {
					return err
				}
			}
			return nil
		})
		var streams [clients][rpcs]*client.Stream[uplinktest.Move]
		for c := range streams {
			conn := uplinktest.Dial(t, network, client.Config{})
			for i := range streams[c] {
				streams[c][i] = uplinktest.Bind(t, conn, fmt.Sprintf("Move%02d", i))
			}
		}
		for n := range uint64(frames) {
			for c := range streams {
				for i, s := range streams[c] {
					m := uplinktest.MoveAt(uint64(i), n)
					uplinktest.Must(t, s.Send(&m))
				}
			}
			time.Sleep(time.Second / 60)
		}
		time.Sleep(time.Second)
		for i, j := range journals {
			logs := j.Logs()
			if len(logs) != clients {
				t.Fatalf("RPC %d: %d players, want %d", i, len(logs), clients)
			}
			for _, l := range logs {
				if l.Frames()+l.Missed != l.Next || l.Frames() < uint64(frames)*75/100 {
					t.Errorf("RPC %d: %d frames delivered and %d missed of %d", i, l.Frames(), l.Missed, l.Next)
				}
			}
			for c := range streams {
				if st := streams[c][i].Stats(); st.Delta < uint64(frames)*9/10 || st.HeaderBits < headerBits(i)*st.Delta {
					t.Errorf("client %d, RPC %d: %+v", c, i, st)
				}
			}
		}
		if st := srv.Stats(); len(st.RPCs) != rpcs || st.Transport.Conns != clients {
			t.Errorf("%d RPCs and %d connections are counted", len(st.RPCs), st.Transport.Conns)
		}
	})
}

// headerBits is the least size of the header of RPC number i.
func headerBits(i int) uint64 {
	switch {
	case i == 0:
		return 14
	case i < 4:
		return 16
	case i < 11:
		return 19
	}
	return 40
}

// TestAckRate verifies that the acks of all RPCs of a player share a datagram, and are sent at the
// configured rate.
func TestAckRate(t *testing.T) {
	rates := []float64{1, 7.5, 10, 20, 60, 144}
	for i := 0; i < len(rates); i += thin(4) {
		hz := rates[i]
		bubble(t, fmt.Sprintf("%v Hz", hz), func(t *testing.T) {
			network := linkedBy(t, 50*ms, simnet.Config{Seed: 5})
			server := netip.MustParseAddrPort(uplinktest.Addr)
			var acks, heartbeats atomic.Int64
			network.Watch(func(from, _ netip.AddrPort, b []byte) {
				switch {
				case from != server:
				case uplinktest.Kind(b) == uplinktest.DataKind:
					acks.Add(1)
				default:
					heartbeats.Add(1)
				}
			})
			const rpcs, seconds, rate = 3, 30, 160
			srv := uplinktest.Serve(t, network, ds.Config{AckHz: hz}, func(s *ds.Server) error {
				for i := range rpcs {
					if err := ds.Handle(s, fmt.Sprint(i), func(*ds.Player, ds.Frame[uplinktest.Move]) {}); err != nil {
						return err
					}
				}
				return nil
			})
			conn := uplinktest.Dial(t, network, client.Config{})
			var streams [rpcs]*client.Stream[uplinktest.Move]
			for i := range streams {
				streams[i] = uplinktest.Bind(t, conn, fmt.Sprint(i))
			}
			acks.Store(0)
			heartbeats.Store(0)
			for n := range uint64(seconds * rate) {
				for i, s := range streams {
					m := uplinktest.MoveAt(uint64(i), n)
					uplinktest.Must(t, s.Send(&m))
				}
				time.Sleep(time.Second / rate)
			}
			seen := acks.Load()
			if want := hz * seconds; float64(seen) < 0.97*want || float64(seen) > 1.01*want+1 {
				t.Errorf("%d datagrams of acks in half a minute, want %v", seen, want)
			}
			if n := heartbeats.Load(); n < seconds-2 || n > seconds+10 { // answers to probes among them
				t.Errorf("%d heartbeats in half a minute", n)
			}
			time.Sleep(2 * time.Second)
			sent, got := srv.Stats().Acks, conn.Stats().AckBytes
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
		network := linkedBy(t, 20*ms, simnet.Config{Seed: 6})
		type flag struct{ Up bool }
		uplinktest.Serve(t, network, ds.Config{}, func(s *ds.Server) error {
			for i := range rpcs {
				if err := ds.Handle(s, fmt.Sprint(i), func(*ds.Player, ds.Frame[flag]) {}); err != nil {
					return err
				}
			}
			return nil
		})
		conn := uplinktest.Dial(t, network, client.Config{})
		var streams [rpcs]*client.Stream[flag]
		for i := range streams {
			s, err := client.Bind[flag](t.Context(), conn, fmt.Sprint(i), client.BindConfig{})
			uplinktest.Must(t, err)
			streams[i] = s
		}
		if _, err := client.Bind[flag](t.Context(), conn, "0", client.BindConfig{}); err == nil {
			t.Error("257 RPCs were bound")
		}
		for range 60 {
			for _, s := range streams {
				uplinktest.Must(t, s.Send(&flag{Up: true}))
			}
			time.Sleep(time.Second / 60)
		}
		before := conn.Stats().AckBytes
		time.Sleep(time.Second)
		if conn.Stats().AckBytes-before > 2*5*rpcs {
			t.Error("acks go on though nothing is sent")
		}
		for i, s := range streams {
			if st := s.Stats(); st.Reset > 10 {
				t.Errorf("RPC %d was not acked for long: %+v", i, st)
			}
		}
	})
}
