package client_test

import (
	"errors"
	"math"
	"net"
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
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
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
			err := m.move.Send(&v)
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
			uplinktest.Must(t, s.Send(f))
			time.Sleep(time.Second / 30)
		}
		if err := s.Send(&schema.Frame{Ints: make([]int32, 3)}); !errors.Is(err, schema.ErrFrame) {
			t.Errorf("a frame of another schema: %v", err)
		}
		f.Ints[0] = 4096
		if err := s.Send(f); err == nil || !strings.Contains(err.Error(), "Aim") {
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
	t.Run("plain", func(t *testing.T) { useConcurrently(t, client.Config{BindTimeout: time.Second}, client.BindConfig{}) })
	t.Run("coalesce", func(t *testing.T) {
		useConcurrently(t, client.Config{BindTimeout: time.Second, Codec: rpcdelta.Adaptive, Tick: 10 * ms, Bandwidth: 30_000}, client.BindConfig{SendEvery: 2})
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
			work(5*ms, func() { check("Send", stream.Send(&m)) })
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
