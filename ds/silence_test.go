package ds_test

import (
	"fmt"
	"math"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// stoppable is a network whose sockets neither receive nor send while it is stopped, as those of a
// process that is suspended: what arrives waits in their buffers.
type stoppable struct {
	transport.Network

	mu      sync.Mutex
	running chan struct{} // closed while it runs
}

func newStoppable(n transport.Network) *stoppable {
	s := &stoppable{Network: n, running: make(chan struct{})}
	close(s.running)
	return s
}

func (s *stoppable) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = make(chan struct{})
}

func (s *stoppable) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.running:
	default:
		close(s.running)
	}
}

func (s *stoppable) wait() {
	s.mu.Lock()
	running := s.running
	s.mu.Unlock()
	<-running
}

// ListenPacket implements transport.Network.
func (s *stoppable) ListenPacket(addr string) (transport.PacketConn, error) {
	pc, err := s.Network.ListenPacket(addr)
	return stoppableConn{pc, s}, err
}

type stoppableConn struct {
	transport.PacketConn
	network *stoppable
}

func (c stoppableConn) ReadFrom(b []byte) (int, netip.AddrPort, error) {
	n, from, err := c.PacketConn.ReadFrom(b)
	c.network.wait()
	return n, from, err
}

func (c stoppableConn) WriteTo(b []byte, to netip.AddrPort) (int, error) {
	c.network.wait()
	return c.PacketConn.WriteTo(b, to)
}

// silence is a test of a client of which the server hears nothing for eight seconds.
type silence struct {
	name      string
	calls     bool // the client makes 60 calls a second
	mute      func(*testing.T, *uplinktest.Network, *stoppable)
	limit     time.Duration // from the end of the silence to the first new snapshot
	areas     bool
	messageHz float64
}

// linkOfSilence has a round-trip time of 40 ms and more.
var linkOfSilence = simnet.Config{Delay: 20 * ms, Jitter: 5 * ms}

// play plays two seconds, and then two silences, each followed by four seconds.
func (c *silence) play(t *testing.T) {
	const objects = 150 // whose keyframe is larger than a datagram
	network := uplinktest.NewNetwork(t, linkOfSilence, linkOfSilence)
	joined := make(chan *ds.Player, 1)
	var world *ds.World[mover]
	serve(t, network, ds.Config{Joined: func(p *ds.Player) { joined <- p }}, func(s *ds.Server) (err error) {
		if world, err = ds.NewWorld(s, "movers", ds.WorldConfig[mover]{SendHz: c.messageHz, Areas: c.areas}); err == nil {
			err = ds.Handle(s, "Move", func(*ds.Player, ds.Frame[uplinktest.Move]) {})
		}
		return err
	})
	host := newStoppable(network)
	conn := uplinktest.Dial(t, host, client.Config{})
	stream, err := world.Offer(<-joined)
	uplinktest.Must(t, err)
	stream.See(1)
	moves, err := client.Bind[uplinktest.Move](t.Context(), conn, "Move", client.BindConfig{})
	uplinktest.Must(t, err)
	running := true
	start := time.Now()
	var shown []time.Time // when the client received complete snapshots that were new
	_, err = client.SubscribeSnapshots(t.Context(), conn, "movers", client.SnapshotConfig[mover]{Handle: func(s *client.Snapshot[mover]) {
		if now := time.Now(); now.Sub(start)-s.Time < 200*ms && len(s.IDs) == objects {
			shown = append(shown, now)
		}
	}})
	uplinktest.Must(t, err)
	step := func(tick uint64) {
		uplinktest.Must(t, world.Begin(tick))
		for i := range objects {
			m := moverAt(i, tick, never)
			var in []area.ID
			if c.areas {
				in = []area.ID{1}
			}
			uplinktest.Must(t, world.Put(uint16(i), 0, &m, in...))
		}
		_, err := world.Send()
		uplinktest.Must(t, err)
	}
	play := func(d time.Duration) {
		for end := time.Now().Add(d); time.Now().Before(end); settle(time.Second / 60) {
			tick := uint64(math.Round(time.Since(start).Seconds() * 60))
			if tick%uint64(60/c.messageHz) == 0 {
				step(tick)
			}
			if c.calls && running {
				move := uplinktest.MoveAt(1, tick)
				_, err := moves.Send(&move)
				uplinktest.Must(t, err)
			}
		}
	}
	settle(100 * ms)
	play(2 * time.Second)
	for round := range 2 / thin(2) {
		c.mute(t, network, host)
		running = false
		play(8 * time.Second)
		host.resume()
		uplinktest.Must(t, network.Set(linkOfSilence, linkOfSilence))
		running, shown = true, nil
		heard := time.Now()
		play(4 * time.Second)
		if len(shown) == 0 {
			t.Errorf("round %d: no snapshot after the silence", round)
			continue
		}
		first := shown[0].Sub(heard)
		t.Logf("round %d: the first snapshot after %v, %d in all", round, first, len(shown))
		// Seldom the end of a silence looks like congestion, and the path gets fewer for seconds.
		if want := c.messageHz * (2 - c.limit.Seconds()); first > c.limit || float64(len(shown)) < want {
			t.Errorf("round %d: the first snapshot after %v, %d in all, want %v and %v", round, first, len(shown), c.limit, want)
		}
	}
}

// TestSilence checks that a client of which nothing was heard for eight seconds receives snapshots
// again soon after it is heard: after its process was suspended; after its link lost everything,
// while it makes calls, or only asks from time to time whether the server is there; and after the
// link to the client alone lost everything, of which the server learns from the next heartbeat.
func TestSilence(t *testing.T) {
	suspended := func(_ *testing.T, _ *uplinktest.Network, host *stoppable) { host.stop() }
	down := linkOfSilence
	down.Loss = 1
	dead := func(t *testing.T, n *uplinktest.Network, _ *stoppable) { uplinktest.Must(t, n.Set(down, down)) }
	deaf := func(t *testing.T, n *uplinktest.Network, _ *stoppable) {
		uplinktest.Must(t, n.Set(linkOfSilence, down))
	}
	for _, c := range []silence{
		{name: "suspended", mute: suspended, limit: 300 * ms},
		{name: "suspended player", calls: true, mute: suspended, limit: 300 * ms},
		{name: "dead link, player", calls: true, mute: dead, limit: 300 * ms},
		{name: "dead link", mute: dead, limit: 600 * ms},
		{name: "dead downlink", calls: true, mute: deaf, limit: 1300 * ms},
	} {
		for _, c.areas = range []bool{false, true} {
			for _, c.messageHz = range []float64{20, 60} {
				if !testing.Short() || c.messageHz == 20 && c.calls && c.limit == 300*ms {
					bubble(t, fmt.Sprintf("%s/areas=%v/%v Hz", c.name, c.areas, c.messageHz), c.play)
				}
			}
		}
	}
}
