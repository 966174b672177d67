package client_test

import (
	"errors"
	"math"
	"net"
	"net/netip"
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

// TestBadValues has Send refuse what a field cannot hold: nothing is sent then,
// and the stream goes on.
func TestBadValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0, 1)
		journal := uplinktest.NewJournal(t, 1)
		serve(t, network, journal)
		s := uplinktest.Bind(t, uplinktest.Dial(t, network, client.Config{}), "Move")
		var sent atomic.Int64
		network.Watch(func(from, _ netip.AddrPort, b []byte) {
			if from.Port() != 7777 && uplinktest.Kind(b) == uplinktest.DataKind {
				sent.Add(1)
			}
		})
		next, refused := uint64(0), uint64(0)
		for _, bad := range []struct {
			want  string
			spoil func(*uplinktest.Move)
		}{
			{"Location", func(m *uplinktest.Move) { m.Location.Y = math.NaN() }},
			{"Velocity", func(m *uplinktest.Move) { m.Velocity.X = math.Inf(-1) }},
			{"Location", func(m *uplinktest.Move) { m.Location.Z = 838_860.8 }},
			{"Rotation", func(m *uplinktest.Move) { m.Rotation.Yaw = math.Inf(1) }},
			{"Aim", func(m *uplinktest.Move) { m.Aim = schema.Quat{} }},
			{"Throttle", func(m *uplinktest.Move) { m.Throttle = float32(math.NaN()) }},
			{"Payload", func(m *uplinktest.Move) { m.Payload = make([]byte, 49) }},
		} {
			for range 10 {
				m := uplinktest.MoveAt(1, next)
				next++
				uplinktest.Must(t, s.Send(&m))
				time.Sleep(time.Second / 60)
			}
			m := uplinktest.MoveAt(1, next)
			bad.spoil(&m)
			refused++
			var e *schema.RangeError
			if err := s.Send(&m); !errors.As(err, &e) || e.RPC != "Move" || e.Field != bad.want ||
				!strings.Contains(err.Error(), "Move") || !strings.Contains(err.Error(), bad.want) {
				t.Errorf("%s: got %v", bad.want, err)
			}
		}
		settle(time.Second)
		if st := s.Stats(); st.OutOfRange != refused || st.Frames() != next || uint64(sent.Load()) != next {
			t.Errorf("%+v, %d datagrams, want %d frames and %d refused", st, sent.Load(), next, refused)
		}
		if l := journal.Only(); l.Frames() != next || l.Missed != 0 {
			t.Errorf("%d of %d frames came", l.Frames(), next)
		}
	})
}

// TestTooLarge has Send refuse a frame that does not fit a datagram.
func TestTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type chunk struct {
			Data []byte `uplink:"max=4000"`
		}
		network := newNetwork(t, 0, 2)
		var got []int
		uplinktest.Serve(t, network, ds.Config{}, func(s *ds.Server) error {
			return ds.Handle(s, "Chunk", func(_ *ds.Player, f ds.Frame[chunk]) { got = append(got, len(f.Value.Data), int(f.Missed)) })
		})
		s, err := client.Bind[chunk](t.Context(), uplinktest.Dial(t, network, client.Config{}), "Chunk", client.BindConfig{})
		uplinktest.Must(t, err)
		noise := make([]byte, 4000)
		for i := range noise {
			noise[i] = byte(i * i >> 3)
		}
		uplinktest.Must(t, s.Send(&chunk{noise[:100]}))
		uplinktest.Must(t, s.Send(&chunk{make([]byte, 4000)})) // short on the wire
		if err := s.Send(&chunk{noise}); !errors.Is(err, rpcdelta.ErrTooLarge) || !strings.Contains(err.Error(), "Chunk") || !strings.Contains(err.Error(), "1173") {
			t.Errorf("got %v", err)
		}
		uplinktest.Must(t, s.Send(&chunk{noise[:1100]}))
		settle(time.Second)
		if want := [6]int{100, 0, 4000, 0, 1100, 0}; len(got) != 6 || [6]int(got) != want {
			t.Errorf("got %v, want %v", got, want)
		}
		if st := s.Stats(); st.TooLarge != 1 || st.Frames() != 3 {
			t.Errorf("%+v", st)
		}
	})
}

// TestFrameStream sends frames of a schema that is known only at run time.
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

// TestConcurrentUse calls everything from many goroutines while the server comes
// and goes and the connection is closed. It is for the race detector; no error
// but the ones that say why nothing was sent may come.
func TestConcurrentUse(t *testing.T) {
	for name, c := range map[string]struct {
		cfg   client.Config
		every int
	}{
		"plain":    {client.Config{BindTimeout: time.Second}, 1},
		"coalesce": {client.Config{BindTimeout: time.Second, Codec: rpcdelta.Adaptive, Tick: 10 * ms, Bandwidth: 30_000}, 2},
	} {
		t.Run(name, func(t *testing.T) { useConcurrently(t, c.cfg, client.BindConfig{SendEvery: c.every}) })
	}
}

func useConcurrently(t *testing.T, cfg client.Config, bind ...client.BindConfig) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0.1, 4)
		setup := func(s *ds.Server) error {
			return ds.Handle(s, "Move", func(p *ds.Player, _ ds.Frame[uplinktest.Move]) { p.RTT() })
		}
		srv := uplinktest.Serve(t, network, ds.Config{}, setup)
		conn := uplinktest.Dial(t, network, cfg)
		stream := uplinktest.Bind(t, conn, "Move", bind...)
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
		for i := range uint64(4) {
			m := uplinktest.MoveAt(1, i)
			work(5*ms, func() {
				err := stream.Send(&m)
				if err != nil && !errors.Is(err, client.ErrReconnecting) && (!closing.Load() || !errors.Is(err, net.ErrClosed)) {
					t.Errorf("Send: %v", err)
				}
			})
		}
		work(7*ms, func() { conn.Stats(); conn.RTT(); stream.Stats() })
		flush := func(f func() error) {
			if err := f(); err != nil && !errors.Is(err, client.ErrReconnecting) && (!closing.Load() || !errors.Is(err, net.ErrClosed)) {
				t.Errorf("Flush: %v", err)
			}
		}
		work(30*ms, func() { flush(stream.Flush); flush(conn.Flush) })
		bound := 0 // a server lets nobody bind an RPC more than 8 times, the stream above included
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
