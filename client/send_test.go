package client_test

import (
	"errors"
	"math"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

// TestInvalidValues checks that Send sends nothing if a field cannot hold its value, and that the
// stream remains usable.
func TestInvalidValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := dialMatch(t, 0, 1, client.Config{})
		sent := outgoing(m.network)
		refused := uint64(0)
		for _, bad := range []struct {
			want  string
			spoil func(*uplinktest.Move)
		}{
			{"Location", func(m *uplinktest.Move) { m.Location.Y = math.NaN() }},
			{"Location", func(m *uplinktest.Move) { m.Location.Z = 838_860.8 }},
			{"Aim", func(m *uplinktest.Move) { m.Aim = schema.Quat{} }},
			{"Payload", func(m *uplinktest.Move) { m.Payload = make([]byte, 49) }},
		} {
			for range 10 {
				m.send()
				time.Sleep(time.Second / 60)
			}
			v := uplinktest.MoveAt(1, m.next)
			bad.spoil(&v)
			refused++
			_, err := m.move.Send(&v)
			if e, ok := errors.AsType[*schema.RangeError](err); !ok || e.RPC != "Move" || e.Field != bad.want {
				t.Errorf("%s: got %v", bad.want, err)
			}
		}
		settle(time.Second)
		if st := m.move.Stats(); st.OutOfRange != refused || st.Frames() != m.next || uint64(sent.Load()) != m.next {
			t.Errorf("%+v, %d datagrams, want %d frames and %d refused", st, sent.Load(), m.next, refused)
		}
		if l := m.journal.Only(); l.Frames() != m.next || l.Missed != 0 {
			t.Errorf("%d of %d frames arrived", l.Frames(), m.next)
		}
	})
}

// TestFrameStream sends frames of a schema that is known at run time only.
func TestFrameStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		look, err := schema.Parse([]byte(`{"rpc": "Look", "rate_hz": 30, "fields": [
			{"name": "Aim", "kind": "angle", "count": 2, "bits": 12}, {"name": "Note", "kind": "bytes", "max": 9}]}`))
		uplinktest.Must(t, err)
		network := newNetwork(t, 0, 3)
		var got []string
		uplinktest.Serve(t, network, ds.Config{}, func(s *ds.Server) error {
			return ds.HandleSchema(s, look, func(_ *ds.Player, f ds.Frame[*schema.Frame]) {
				got = append(got, string(look.BytesOf(f.Value, 1)))
				if want := []float64{45, -90}; f.Value.Ints[0] != 512 || look.RestoreField(nil, f.Value, 0)[1] != want[1] {
					t.Errorf("frame %d is %v, want %v", f.Seq, f.Value.Ints, want)
				}
			})
		})
		s, err := client.BindSchema(t.Context(), uplinktest.Dial(t, network, client.Config{}), look, client.BindConfig{})
		uplinktest.Must(t, err)
		f := look.NewFrame()
		uplinktest.Must(t, look.QuantizeField(f, 0, []float64{45, 270}))
		for _, note := range []string{"one", "", "threeeeee"} {
			uplinktest.Must(t, look.SetBytes(f, 1, []byte(note)))
			uplinktest.Must(t, uplinktest.Sent(s.Send(f)))
			time.Sleep(time.Second / 30)
		}
		if _, err := s.Send(&schema.Frame{Ints: make([]int32, 3)}); !errors.Is(err, schema.ErrFrame) {
			t.Errorf("a frame of another schema: %v", err)
		}
		f.Ints[0] = 4096
		if _, err := s.Send(f); err == nil || !strings.Contains(err.Error(), "Aim") {
			t.Errorf("a component out of range: %v", err)
		}
		settle(time.Second)
		if strings.Join(got, ",") != "one,,threeeeee" {
			t.Errorf("got %q", got)
		}
		if st := s.Stats(); st.Frames() != 3 || st.OutOfRange != 1 || st.Unencodable != 1 || st.RPC != "Look" {
			t.Errorf("%+v", st)
		}
	})
}

// TestConcurrentUse calls all methods from many goroutines while the server restarts and the
// connection is closed. It is for the race detector. The only errors are those of a connection that
// is reconnecting or closed.
func TestConcurrentUse(t *testing.T) {
	t.Run("plain", func(t *testing.T) {
		useConcurrently(t, client.Config{Transport: client.Transport{BindTimeout: time.Second}}, client.BindConfig{})
	})
	t.Run("coalesce", func(t *testing.T) {
		useConcurrently(t, client.Config{Transport: client.Transport{BindTimeout: time.Second}, Tuning: client.Tuning{Codec: rpcdelta.Adaptive}, Tick: 10 * ms, Bandwidth: 30_000}, client.BindConfig{Delay: uplinktest.Wait(1, 60)})
	})
}

func useConcurrently(t *testing.T, cfg client.Config, bind client.BindConfig) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0.1, 4)
		setup := func(s *ds.Server) error {
			return ds.Handle(s, "Move", func(p *ds.Player, _ ds.Frame[uplinktest.Move]) { p.RTT() })
		}
		srv := uplinktest.Serve(t, network, ds.Config{}, setup)
		conn := uplinktest.Dial(t, network, cfg)
		stream := uplinktest.Bind(t, conn, "Move", bind)
		var workers sync.WaitGroup
		var closing atomic.Bool
		closed := make(chan struct{})
		work := func(period time.Duration, f func()) {
			workers.Go(func() {
				for {
					select {
					case <-closed:
						return
					case <-time.After(period):
						f()
					}
				}
			})
		}
		check := func(what string, err error) {
			if err != nil && !errors.Is(err, client.ErrReconnecting) && (!closing.Load() || !errors.Is(err, net.ErrClosed)) {
				t.Errorf("%s: %v", what, err)
			}
		}
		for i := range uint64(4) {
			m := uplinktest.MoveAt(1, i)
			work(5*ms, func() { check("Send", uplinktest.Sent(stream.Send(&m))) })
		}
		work(7*ms, func() { conn.Stats(); conn.RTT(); stream.Stats() })
		work(30*ms, func() { check("Stream.Flush", stream.Flush()); check("Flush", conn.Flush()) })
		bound := 0 // a server permits 8 bindings of an RPC, with the stream above
		work(100*ms, func() {
			if bound++; bound > 7 {
				return
			}
			if _, err := client.Bind[uplinktest.Move](t.Context(), conn, "Move", client.BindConfig{}); errors.Is(err, client.ErrReconnecting) {
				t.Errorf("Bind: %v", err)
			}
		})
		for i := range 6 {
			time.Sleep(3 * time.Second)
			if i%2 == 0 {
				network.Crash(t, uplinktest.Addr)
				<-srv.Served
			} else {
				uplinktest.Must(t, srv.Close())
			}
			time.Sleep(500 * ms)
			srv = uplinktest.Serve(t, network, ds.Config{}, setup)
		}
		time.Sleep(3 * time.Second)
		closing.Store(true)
		uplinktest.Must(t, conn.Close())
		time.Sleep(100 * ms)
		close(closed)
		workers.Wait()
		if st := stream.Stats(); st.Frames() < 5000 || st.Reconnecting < 100 {
			t.Errorf("%d frames sent, %d calls while reconnecting", st.Frames(), st.Reconnecting)
		}
	})
}

// TestGoexitInOnMessage checks that the connection continues after a callback ended the
// connection's goroutine, as FailNow does.
func TestGoexitInOnMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0, 1)
		var player *ds.Player
		uplinktest.Serve(t, network, ds.Config{Joined: func(p *ds.Player) { player = p }}, func(*ds.Server) error { return nil })
		var got []byte
		conn := uplinktest.Dial(t, network, client.Config{OnMessage: func(b []byte) {
			got = append(got, b...)
			runtime.Goexit()
		}})
		settle(time.Second)
		for i := range byte(5) {
			uplinktest.Must(t, errors.Join(player.SendReliable([]byte{i}), conn.Err()))
			settle(time.Second)
		}
		if !slices.Equal(got, []byte{0, 1, 2, 3, 4}) {
			t.Errorf("got messages %v", got)
		}
	})
}

// outgoing counts the unreliable datagrams that clients send.
func outgoing(n *uplinktest.Network) *atomic.Int64 {
	var sent atomic.Int64
	n.Watch(func(from, _ netip.AddrPort, b []byte) {
		if from.Port() != 7777 && uplinktest.Kind(b) == uplinktest.DataKind {
			sent.Add(1)
		}
	})
	return &sent
}

// TestFlush collects payloads until Flush, and until a datagram is full.
func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0, 1)
		srv := uplinktest.Serve(t, network, ds.Config{}, func(s *ds.Server) error {
			move, look := uplinktest.NewJournal(t, 0), uplinktest.NewJournal(t, 1)
			return errors.Join(ds.Handle(s, "Move", move.Handle), ds.Handle(s, "Look", look.Handle))
		})
		conn := uplinktest.Dial(t, network, client.Config{Tuning: client.Tuning{FlushOnly: true}})
		streams := [2]*client.Stream[uplinktest.Move]{uplinktest.Bind(t, conn, "Move"), uplinktest.Bind(t, conn, "Look")}
		sent := outgoing(network)
		next := uint64(0)
		call := func() {
			for i, s := range streams {
				m := uplinktest.MoveAt(uint64(i), next)
				uplinktest.Must(t, uplinktest.Sent(s.Send(&m)))
			}
			next++
		}
		check := func(datagrams int64, frames uint64) {
			t.Helper()
			settle(time.Second)
			if n := sent.Load(); n != datagrams {
				t.Errorf("%d datagrams were sent, want %d", n, datagrams)
			}
			for _, st := range srv.Stats().RPCs {
				if n := st.Frames(); n != frames {
					t.Errorf("%s: %d frames arrived, want %d", st.RPC, n, frames)
				}
			}
		}
		call()
		check(0, 0)
		uplinktest.Must(t, conn.Flush())
		check(1, 1)
		uplinktest.Must(t, conn.Flush()) // nothing
		check(1, 1)
		for range 3 { // several of one RPC
			call()
		}
		uplinktest.Must(t, conn.Flush())
		check(2, 4)
		for range 100 { // a datagram holds up to 8 of each
			call()
		}
		uplinktest.Must(t, conn.Flush())
		check(15, 104)
		call()
		uplinktest.Must(t, conn.Close()) // flushes
		check(16, 105)
		if err := conn.Flush(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		st := streams[1].Stats()
		if st.Coalesced != 105 || st.CoalescedBytes < st.Coalesced || st.CoalescedBytes > 2*st.Coalesced {
			t.Errorf("%d of %d payloads shared a datagram for %d bytes", st.Coalesced, st.Messages, st.CoalescedBytes)
		}
	})
}

// TestTick checks that payloads are sent once per Config.Tick.
func TestTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tick, calls = 50 * ms, 50
		m := dialMatch(t, 0, 1, client.Config{Tick: tick})
		settle(time.Second)
		sent := outgoing(m.network)
		for range calls {
			m.send()
			settle(tick/4 + 1)
		}
		settle(time.Second)
		if n := sent.Load(); n < calls/4-1 || n > calls/4+2 {
			t.Errorf("%d datagrams of %d calls, four per tick", n, calls)
		}
		if n := m.journal.Only().Frames(); n != calls {
			t.Errorf("%d frames arrived", n)
		}
	})
}

// TestHeldFrames checks that held frames are sent with the last of their number, by Flush, by
// Close, or when no more follow for a while.
func TestHeldFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := dialMatch(t, 0, 1, client.Config{Tuning: client.Tuning{Codec: rpcdelta.Adaptive}}, client.BindConfig{Delay: uplinktest.Wait(2, 20), RateHz: 20})
		settle(time.Second)
		sent := outgoing(m.network)
		for i, step := range []struct {
			calls int
			then  func() error
			wait  time.Duration
			want  int64 // datagrams so far
		}{
			{calls: 2, want: 0},
			{calls: 1, want: 1},
			{calls: 1, wait: 140 * ms, want: 1},
			{wait: 60 * ms, want: 2}, // three intervals of 50 ms, and two ticks
			{calls: 1, wait: 140 * ms, want: 2},
			{calls: 1, wait: 5 * ms, want: 2},
			{wait: 60 * ms, want: 3},
			{calls: 1, then: m.move.Flush, want: 4},
			{then: m.move.Flush, want: 4}, // nothing is held
			{calls: 2, then: m.conn.Close, want: 5},
		} {
			for range step.calls {
				m.send()
			}
			if step.then != nil {
				uplinktest.Must(t, step.then())
			}
			if step.wait > 0 {
				settle(step.wait)
			}
			if n := sent.Load(); n != step.want {
				t.Fatalf("after step %d and %d calls: %d datagrams, want %d", i, m.next, n, step.want)
			}
		}
		settle(time.Second)
		if n := m.journal.Only().Frames(); n != m.next {
			t.Errorf("%d of %d frames arrived", n, m.next)
		}
		if st := m.move.Stats(); st.Frames() != m.next || st.Messages != 5 {
			t.Errorf("%+v", st)
		}
	})
}

// chunk is an argument that may exceed a datagram.
type chunk struct {
	Data []byte `uplink:"max=4000"`
}

// noise returns bytes that no codec makes shorter.
func noise(n int) *chunk {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * i >> 3)
	}
	return &chunk{b}
}

// bindChunk starts a server, and returns a stream and the sizes and missed frames that the server
// received.
func bindChunk(t *testing.T, cfg client.Config, bind client.BindConfig) (*client.Stream[chunk], *[]int) {
	t.Helper()
	network := newNetwork(t, 0, 2)
	var got []int
	uplinktest.Serve(t, network, ds.Config{}, func(s *ds.Server) error {
		return ds.Handle(s, "Chunk", func(_ *ds.Player, f ds.Frame[chunk]) { got = append(got, len(f.Value.Data), int(f.Missed)) })
	})
	s, err := client.Bind[chunk](t.Context(), uplinktest.Dial(t, network, cfg), "Chunk", bind)
	uplinktest.Must(t, err)
	return s, &got
}

// TestTooLarge refuses frames that do not fit into a datagram, alone and among held frames. The
// others arrive, in their own datagrams if necessary.
func TestTooLarge(t *testing.T) {
	for _, c := range []struct {
		cfg           client.Config
		bind          client.BindConfig
		before, after []*chunk
		refused       *chunk
		contains      string
	}{
		{before: []*chunk{noise(100), {make([]byte, 4000)}}, refused: noise(4000), contains: "1173", after: []*chunk{noise(1100)}},
		{
			cfg: client.Config{Tuning: client.Tuning{Codec: rpcdelta.Adaptive}}, bind: client.BindConfig{Delay: uplinktest.Wait(3, 60)},
			before: []*chunk{noise(500), noise(600), noise(700)}, refused: noise(2000),
			after: []*chunk{noise(1150), noise(1140), noise(5), noise(1000), noise(10)},
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, got := bindChunk(t, c.cfg, c.bind)
			var want []int
			send := func(all []*chunk) {
				for _, v := range all {
					uplinktest.Must(t, uplinktest.Sent(s.Send(v)))
					want = append(want, len(v.Data), 0)
				}
			}
			send(c.before)
			if _, err := s.Send(c.refused); !errors.Is(err, rpcdelta.ErrTooLarge) || !strings.Contains(err.Error(), "Chunk") || !strings.Contains(err.Error(), c.contains) {
				t.Errorf("got %v", err)
			}
			send(c.after)
			settle(time.Second)
			if !slices.Equal(*got, want) {
				t.Errorf("got %v, want %v", *got, want)
			}
			if st := s.Stats(); st.TooLarge != 1 || st.Frames() != uint64(len(want)/2) {
				t.Errorf("%+v", st)
			}
		})
	}
}

// TestHeldWhileReconnecting counts the held frames that are lost with a session.
func TestHeldWhileReconnecting(t *testing.T) {
	for _, flushOnly := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			m := dialMatch(t, 0, 1, client.Config{Tuning: client.Tuning{Codec: rpcdelta.Adaptive, FlushOnly: flushOnly}, Transport: client.Transport{Timeout: 2 * time.Second}}, client.BindConfig{Delay: uplinktest.Wait(3, 1), RateHz: 1})
			fourCalls := func() {
				for range 4 {
					m.send()
				}
				uplinktest.Must(t, m.conn.Flush())
				settle(time.Second)
			}
			fourCalls()
			uplinktest.Must(t, m.srv.Close())
			uplinktest.Must(t, <-m.srv.Served)
			m.send() // the client does not know yet
			settle(time.Second)
			for what, err := range map[string]error{"Flush": m.conn.Flush(), "Stream.Flush": m.move.Flush(), "Send": m.try()} {
				if !errors.Is(err, client.ErrReconnecting) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if st := m.move.Stats(); st.Frames() != 4 || st.Reconnecting != 2 {
				t.Errorf("%+v", st)
			}
			m.serve(ds.Config{})
			settle(5 * time.Second)
			m.next = 0
			fourCalls()
			logs := m.journal.Logs()
			if l := logs[len(logs)-1]; len(logs) != 2 || l.Frames() != 4 {
				t.Errorf("%d players, the last one's log is %+v", len(logs), l)
			}
		})
	}
}
