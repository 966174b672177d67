package client_test

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta"
)

// TestSendEveryOptions has Bind refuse what cannot be, and say why.
func TestSendEveryOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0, 1)
		serve(t, network, uplinktest.NewJournal(t, 1))
		adaptive := uplinktest.Dial(t, network, client.Config{Codec: rpcdelta.Adaptive})
		plain := uplinktest.Dial(t, network, client.Config{Codec: rpcdelta.RLE})
		for _, c := range []struct {
			conn *client.Conn
			bind client.BindConfig
			want string
		}{
			{adaptive, client.BindConfig{SendEvery: 5}, "SendEvery is 5"},
			{adaptive, client.BindConfig{SendEvery: -1}, "SendEvery is -1"},
			{adaptive, client.BindConfig{SendEvery: 2, Reliable: true}, "reliable"},
			{plain, client.BindConfig{SendEvery: 2}, "codec rle"},
			{plain, client.BindConfig{SendEvery: 1}, ""},
			{adaptive, client.BindConfig{Reliable: true}, ""},
			{adaptive, client.BindConfig{SendEvery: 4}, ""},
		} {
			_, err := client.Bind[uplinktest.Move](t.Context(), c.conn, "Move", c.bind)
			if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "Move")) {
				t.Errorf("%v, want %q", err, c.want)
			}
		}
	})
}

// outgoing counts the datagrams with frames that clients send.
func outgoing(n *uplinktest.Network) *atomic.Int64 {
	var sent atomic.Int64
	n.Watch(func(from, _ netip.AddrPort, b []byte) {
		if from.Port() != 7777 && uplinktest.Kind(b) == uplinktest.DataKind {
			sent.Add(1)
		}
	})
	return &sent
}

// TestFlush collects calls until Flush, and until a datagram is full.
func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0, 1)
		var journals [2]*uplinktest.Journal
		srv := uplinktest.Serve(t, network, ds.Config{}, func(s *ds.Server) error {
			journals = [2]*uplinktest.Journal{uplinktest.NewJournal(t, 0), uplinktest.NewJournal(t, 1)}
			return errors.Join(ds.Handle(s, "Move", journals[0].Handle), ds.Handle(s, "Look", journals[1].Handle))
		})
		conn := uplinktest.Dial(t, network, client.Config{FlushOnly: true})
		streams := [2]*client.Stream[uplinktest.Move]{uplinktest.Bind(t, conn, "Move"), uplinktest.Bind(t, conn, "Look")}
		sent := outgoing(network)
		next := uint64(0)
		call := func() {
			for i, s := range streams {
				m := uplinktest.MoveAt(uint64(i), next)
				uplinktest.Must(t, s.Send(&m))
			}
			next++
		}
		came := func(datagrams int64, frames uint64) {
			t.Helper()
			settle(time.Second)
			if n := sent.Load(); n != datagrams {
				t.Errorf("%d datagrams were sent, want %d", n, datagrams)
			}
			for i := range journals {
				if n := srv.Stats().RPCs[1-i].Frames(); n != frames {
					t.Errorf("RPC %d: %d frames came, want %d", i, n, frames)
				}
			}
		}
		call()
		came(0, 0)
		uplinktest.Must(t, conn.Flush())
		came(1, 1)
		uplinktest.Must(t, conn.Flush()) // nothing
		came(1, 1)
		for range 3 { // several of one RPC
			call()
		}
		uplinktest.Must(t, conn.Flush())
		came(2, 4)
		for range 100 { // a datagram holds up to 8 of each
			call()
		}
		uplinktest.Must(t, conn.Flush())
		came(15, 104)
		call()
		uplinktest.Must(t, conn.Close()) // flushes
		came(16, 105)
		if err := conn.Flush(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		st := streams[1].Stats()
		if st.Coalesced != 105 || st.CoalescedBytes < st.Coalesced || st.CoalescedBytes > 2*st.Coalesced {
			t.Errorf("%d of %d payloads shared a datagram for %d bytes", st.Coalesced, st.Messages, st.CoalescedBytes)
		}
	})
}

// TestTick has calls leave at the connection's tick, and no later.
func TestTick(t *testing.T) {
	for _, tick := range []time.Duration{5 * ms, 17 * ms, 50 * ms, 200 * ms} {
		synctest.Test(t, func(t *testing.T) {
			network := newNetwork(t, 0, 1)
			journal := uplinktest.NewJournal(t, 1)
			serve(t, network, journal)
			conn := uplinktest.Dial(t, network, client.Config{Tick: tick})
			move := uplinktest.Bind(t, conn, "Move")
			settle(time.Second)
			sent := outgoing(network)
			const calls = 50
			for n := range uint64(calls) {
				m := uplinktest.MoveAt(1, n)
				uplinktest.Must(t, move.Send(&m))
				settle(tick/4 + 1)
			}
			settle(tick)
			if n := sent.Load(); n < calls/8 || n > calls/4+2 {
				t.Errorf("%d datagrams of %d calls, four a tick of %v", n, calls, tick)
			}
			settle(time.Second)
			if n := journal.Only().Frames(); n != calls {
				t.Errorf("%d frames came", n)
			}
		})
	}
}

// TestHeldFrames: calls that are held back leave with the last of their number, at
// Flush, or when no more come for a while.
func TestHeldFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0, 1)
		journal := uplinktest.NewJournal(t, 1)
		serve(t, network, journal)
		conn := uplinktest.Dial(t, network, client.Config{Codec: rpcdelta.Adaptive})
		move := uplinktest.Bind(t, conn, "Move", client.BindConfig{SendEvery: 3, RateHz: 20})
		settle(time.Second)
		sent := outgoing(network)
		next := uint64(0)
		call := func() {
			m := uplinktest.MoveAt(1, next)
			uplinktest.Must(t, move.Send(&m))
			next++
		}
		left := func(want int64) {
			t.Helper()
			if n := sent.Load(); n != want {
				t.Fatalf("after %d calls %d datagrams were sent, want %d", next, n, want)
			}
		}
		call()
		call()
		left(0)
		call()
		left(1)
		call()
		settle(140 * ms)
		left(1)
		settle(60 * ms) // three intervals of 50 ms, and two ticks
		left(2)
		call()
		settle(140 * ms)
		call()
		settle(5 * ms)
		left(2)
		settle(60 * ms)
		left(3)
		call()
		uplinktest.Must(t, move.Flush())
		left(4)
		uplinktest.Must(t, move.Flush()) // nothing
		left(4)
		call()
		call()
		uplinktest.Must(t, conn.Close())
		left(5)
		settle(time.Second)
		if n := journal.Only().Frames(); n != next {
			t.Errorf("%d of %d frames came", n, next)
		}
		if st := move.Stats(); st.Frames() != next || st.Messages != 5 {
			t.Errorf("%+v", st)
		}
		if err := move.Flush(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// TestHeldTooLarge: a call that does not fit is refused alone, and those that fit
// only in datagrams of their own arrive.
func TestHeldTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type chunk struct {
			Data []byte `uplink:"max=4000"`
		}
		network := newNetwork(t, 0, 2)
		var got []int
		uplinktest.Serve(t, network, ds.Config{}, func(s *ds.Server) error {
			return ds.Handle(s, "Chunk", func(_ *ds.Player, f ds.Frame[chunk]) { got = append(got, len(f.Value.Data), int(f.Missed)) })
		})
		conn := uplinktest.Dial(t, network, client.Config{Codec: rpcdelta.Adaptive})
		s, err := client.Bind[chunk](t.Context(), conn, "Chunk", client.BindConfig{SendEvery: 4})
		uplinktest.Must(t, err)
		noise := make([]byte, 4000)
		for i := range noise {
			noise[i] = byte(i * i >> 3)
		}
		for _, n := range []int{500, 600, 700} {
			uplinktest.Must(t, s.Send(&chunk{noise[:n]}))
		}
		if err := s.Send(&chunk{noise[:2000]}); !errors.Is(err, rpcdelta.ErrTooLarge) || !strings.Contains(err.Error(), "Chunk") {
			t.Errorf("got %v", err)
		}
		for _, n := range []int{1150, 1140, 5, 1000, 10} {
			uplinktest.Must(t, s.Send(&chunk{noise[:n]}))
		}
		settle(time.Second)
		if want := []int{500, 0, 600, 0, 700, 0, 1150, 0, 1140, 0, 5, 0, 1000, 0, 10, 0}; len(got) != len(want) {
			t.Errorf("got %v, want %v", got, want)
		} else {
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("got %v, want %v", got, want)
					break
				}
			}
		}
		if st := s.Stats(); st.TooLarge != 1 || st.Frames() != 8 {
			t.Errorf("%+v", st)
		}
	})
}

// TestHeldWhileReconnecting counts what is lost with a connection.
func TestHeldWhileReconnecting(t *testing.T) {
	for _, flushOnly := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			network := newNetwork(t, 0, 1)
			journal := uplinktest.NewJournal(t, 1)
			srv := serve(t, network, journal)
			conn := uplinktest.Dial(t, network, client.Config{Codec: rpcdelta.Adaptive, FlushOnly: flushOnly, Timeout: 2 * time.Second})
			move := uplinktest.Bind(t, conn, "Move", client.BindConfig{SendEvery: 4, RateHz: 1})
			call := func(n uint64) error {
				m := uplinktest.MoveAt(1, n)
				return move.Send(&m)
			}
			for n := range uint64(4) {
				uplinktest.Must(t, call(n))
			}
			uplinktest.Must(t, conn.Flush())
			settle(time.Second)
			uplinktest.Must(t, srv.Close())
			uplinktest.Must(t, <-srv.Served)
			held := uint64(0)
			if call(4) == nil { // nobody has noticed yet
				held++
			}
			settle(time.Second)
			if err := conn.Flush(); !errors.Is(err, client.ErrReconnecting) {
				t.Errorf("Flush: %v", err)
			}
			if err := move.Flush(); !errors.Is(err, client.ErrReconnecting) {
				t.Errorf("Flush of the RPC: %v", err)
			}
			if err := call(5); !errors.Is(err, client.ErrReconnecting) {
				t.Errorf("Send: %v", err)
			}
			if st := move.Stats(); st.Frames() != 4 || held != 1 || st.Reconnecting != 2 {
				t.Errorf("%d held, %+v", held, st)
			}
			serve(t, network, journal)
			settle(5 * time.Second)
			for n := range uint64(4) {
				uplinktest.Must(t, call(n))
			}
			uplinktest.Must(t, conn.Flush())
			settle(time.Second)
			logs := journal.Logs()
			if l := logs[len(logs)-1]; len(logs) != 2 || l.Frames() != 4 {
				t.Errorf("%d players, the last one's log is %+v", len(logs), l)
			}
		})
	}
}
