package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
	"github.com/uplink-rpc/uplink/transport"
)

type explosion struct {
	At     schema.Vec3 `uplink:"resolution=0.125"`
	Kind   uint8
	Source uint16
}

func explosionAt(n uint64) explosion {
	return explosion{schema.Vec3{X: float64(n % 512), Y: float64(n%64) / 8, Z: 10}, uint8(n % 5), uint16(n)}
}

// played is a server that makes calls to one client.
type played struct {
	t       *testing.T
	network *uplinktest.Network
	srv     *uplinktest.Server
	joined  chan *ds.Player
	conn    *client.Conn

	calls  int
	missed uint64
	next   uint64 // sequence number after the newest call
}

func newPlayed(t *testing.T, loss float64, seed uint64, handlers *client.Handlers) *played {
	p := &played{t: t, network: newNetwork(t, loss, seed), joined: make(chan *ds.Player, 10)}
	uplinktest.Must(t, client.Handle(handlers, "Explosion", p.onCall))
	p.serve()
	p.conn = uplinktest.Dial(t, p.network, client.Config{Handlers: handlers})
	return p
}

func (p *played) serve() {
	cfg := ds.Config{Joined: func(player *ds.Player) { p.joined <- player }}
	p.srv = uplinktest.Serve(p.t, p.network, cfg, func(*ds.Server) error { return nil })
}

func (p *played) onCall(c client.Call[explosion]) {
	if want := explosionAt(c.Seq); c.Value != want || c.Seq < p.next || c.Missed != c.Seq-p.next {
		p.t.Errorf("call %d after %d, %d missed: %+v, want %+v", c.Seq, p.next, c.Missed, c.Value, want)
	}
	p.calls++
	p.missed += c.Missed
	p.next = c.Seq + 1
}

// play makes calls, hz a second, and returns how many.
func (p *played) play(s *ds.Stream[explosion], hz int, d time.Duration) (sent int) {
	for ; time.Duration(sent) < d*time.Duration(hz)/time.Second; sent++ {
		v := explosionAt(uint64(sent))
		seq, err := s.Send(&v)
		if err != nil || seq != uint64(sent) {
			p.t.Fatalf("call %d: %d, %v", sent, seq, err)
		}
		time.Sleep(time.Second / time.Duration(hz))
	}
	settle(2 * time.Second)
	return sent
}

// TestCalls makes calls from the server to a client over a link that loses 10 %, starting when the
// player has joined: reliable ones all arrive, of the others those that loss and redundancy leave.
func TestCalls(t *testing.T) {
	for name, c := range map[string]struct {
		hz    int
		cfg   ds.BindConfig
		least float64
	}{
		"60 Hz":    {60, ds.BindConfig{}, 0.98},
		"5 Hz":     {5, ds.BindConfig{RateHz: 5}, 0.85},
		"reliable": {30, ds.BindConfig{RateHz: 30, Reliable: true}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPlayed(t, 0.1, 3, new(client.Handlers))
				s, err := ds.Bind[explosion](<-p.joined, "Explosion", c.cfg)
				uplinktest.Must(t, err)
				sent := p.play(s, c.hz, 20*time.Second)
				if share := float64(p.calls) / float64(sent); share < c.least || c.cfg.Reliable && p.missed != 0 {
					t.Errorf("%d of %d calls arrived, %d missed", p.calls, sent, p.missed)
				}
				st := s.Stats()
				t.Logf("%d calls: %.1f bytes each, %.1f in full; %d keyframes", sent,
					float64(st.PayloadBits)/8/float64(sent), float64(st.FullBits)/8/float64(sent), st.Keyframe)
				if st.PayloadBits*2 > st.FullBits*3 || !c.cfg.Reliable && c.hz == 60 && st.Delta < uint64(sent)*9/10 {
					t.Errorf("%+v", st)
				}
				for d, n := range p.srv.Stats().Drops {
					if n != 0 {
						t.Errorf("the server dropped %d as %v", n, ds.Drop(d))
					}
				}
				if got := p.conn.Stats(); got.Malformed != 0 || got.Calls != uint64(p.calls) {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}

// TestCallsRefused calls what the client does not handle, or with other fields, and then what it
// does.
func TestCallsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlayed(t, 0, 1, new(client.Handlers))
		player := <-p.joined
		type shifted struct {
			At, Kind schema.Vec2 `uplink:"resolution=1"`
		}
		for _, reliable := range []bool{false, true} {
			unknown, err := ds.Bind[explosion](player, "Implosion", ds.BindConfig{Reliable: reliable})
			uplinktest.Must(t, err)
			other, err := ds.Bind[shifted](player, "Explosion", ds.BindConfig{Reliable: reliable})
			uplinktest.Must(t, err)
			for range 3 { // before the server knows
				uplinktest.Must(t, uplinktest.Sent(unknown.Send(&explosion{})))
				uplinktest.Must(t, uplinktest.Sent(other.Send(&shifted{})))
			}
			settle(time.Second)
			if _, err := unknown.Send(&explosion{}); err == nil || !strings.Contains(err.Error(), `no such RPC, nearest "Explosion"; it handles Explosion`) {
				t.Errorf("unknown: %v", err)
			}
			if _, err := other.Send(&shifted{}); err == nil || !strings.Contains(err.Error(), `field "At"`) {
				t.Errorf("other fields: %v", err)
			}
		}
		s, err := ds.Bind[explosion](player, "Explosion", ds.BindConfig{})
		uplinktest.Must(t, err)
		if n := p.play(s, 60, time.Second); p.calls != n {
			t.Errorf("%d of %d calls arrived", p.calls, n)
		}
		if _, err := s.Send(&explosion{At: schema.Vec3{X: 1e9}}); !errors.As(err, new(*schema.RangeError)) {
			t.Errorf("out of range: %v", err)
		}
		for range 27 {
			_, err = ds.Bind[explosion](player, "Explosion", ds.BindConfig{})
			uplinktest.Must(t, err)
		}
		if _, err = ds.Bind[explosion](player, "Explosion", ds.BindConfig{}); err == nil || !strings.Contains(err.Error(), "32") {
			t.Errorf("too many: %v", err)
		}
		player.Kick("enough")
		settle(time.Second)
		if _, err := s.Send(&explosion{}); err == nil {
			t.Error("calls after the end of the session")
		}
		if err := p.conn.Err(); !errors.Is(err, transport.ErrKicked) {
			t.Errorf("the session ended with %v", err)
		}
	})
}

// TestCallsAfterReconnection restarts the server: the new player's calls arrive.
func TestCallsAfterReconnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlayed(t, 0.1, 5, new(client.Handlers))
		for range 2 {
			p.next = 0
			s, err := ds.Bind[explosion](<-p.joined, "Explosion", ds.BindConfig{Reliable: true})
			uplinktest.Must(t, err)
			p.calls = 0
			if n := p.play(s, 60, 2*time.Second); p.calls != n {
				t.Errorf("%d of %d calls arrived", p.calls, n)
			}
			uplinktest.Must(t, p.srv.Close())
			p.serve()
		}
	})
}

// TestCallsBacklog fills the queue of reliable data: calls are refused,
// and none of those that were accepted is lost.
func TestCallsBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlayed(t, 0, 1, new(client.Handlers))
		s, err := ds.Bind[explosion](<-p.joined, "Explosion", ds.BindConfig{Reliable: true})
		uplinktest.Must(t, err)
		sent, refused := 0, 0
		for range 120_000 {
			v := explosionAt(uint64(sent))
			switch _, err := s.Send(&v); {
			case err == nil:
				sent++
			case errors.Is(err, transport.ErrBacklog):
				refused++
			default:
				t.Fatal(err)
			}
		}
		settle(2 * time.Minute)
		if refused == 0 || p.calls != sent || p.missed != 0 {
			t.Errorf("%d calls were sent, %d refused, %d arrived", sent, refused, p.calls)
		}
	})
}

// TestCallAllocations makes calls over loopback.
func TestCallAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	var handlers client.Handlers
	got := make(chan uint64, 1)
	uplinktest.Must(t, client.Handle(&handlers, "Explosion", func(c client.Call[explosion]) { got <- c.Seq }))
	joined := make(chan *ds.Player, 1)
	srv, err := ds.Listen("127.0.0.1:0", ds.Config{Transport: ds.Transport{Timeout: time.Minute}, Joined: func(p *ds.Player) { joined <- p }})
	uplinktest.Must(t, err)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(context.Background()) }()
	conn, err := client.Dial(t.Context(), srv.Addr().String(), client.Config{Transport: client.Transport{Timeout: time.Minute}, Handlers: &handlers})
	uplinktest.Must(t, err)
	s, err := ds.Bind[explosion](<-joined, "Explosion", ds.BindConfig{RateHz: 1000})
	uplinktest.Must(t, err)
	n, v := uint64(0), explosion{}
	call := func() {
		v = explosionAt(n)
		uplinktest.Must(t, uplinktest.Sent(s.Send(&v)))
		if seq := <-got; seq != n {
			t.Fatalf("call %d is %d", n, seq)
		}
		n++
	}
	for range 1000 {
		call()
	}
	if allocs := allocs.PerRun(1000, call); allocs != 0 {
		t.Errorf("%v allocations per call", allocs)
	}
	uplinktest.Must(t, conn.Close())
	uplinktest.Must(t, srv.Close())
	uplinktest.Must(t, <-served)
}
