package transport_test

import (
	"errors"
	"net/netip"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// ticker notes when it is ticked.
type ticker struct {
	recorder
	at []time.Time
}

func (k *ticker) Tick(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.at = append(k.at, now)
}

func (k *ticker) ticked() []time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.at
}

// TestWake ticks a handler when it asks for it: at the earliest of the times, once.
func TestWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, simnet.Config{Delay: 10 * time.Millisecond})
		l := listen(t, serverAddr, transport.Config{Network: n}, &recorder{t: t})
		k := &ticker{recorder: recorder{t: t}}
		c := dial(t, l.Addr(), transport.Config{Network: n, Tick: transport.OnWake}, k)
		time.Sleep(5 * time.Second)
		if at := k.ticked(); len(at) != 0 {
			t.Fatalf("%d ticks that nobody asked for", len(at))
		}
		start := time.Now()
		for _, ms := range []time.Duration{500, 200, 300} {
			c.Wake(start.Add(ms * time.Millisecond))
		}
		time.Sleep(time.Second)
		c.Wake(time.Now().Add(-time.Hour))
		synctest.Wait()
		want := []time.Time{start.Add(200 * time.Millisecond), start.Add(time.Second)}
		if at := k.ticked(); !slices.EqualFunc(at, want, time.Time.Equal) {
			t.Errorf("ticked at %v, want %v", at, want)
		}
	})
}

// TestTicks: without being asked the handler is ticked in a rhythm.
func TestTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, simnet.Config{})
		l := listen(t, serverAddr, transport.Config{Network: n}, &recorder{t: t})
		k := &ticker{recorder: recorder{t: t}}
		dial(t, l.Addr(), transport.Config{Network: n, Tick: 30 * time.Millisecond}, k)
		time.Sleep(3*time.Second + time.Millisecond)
		if n := len(k.ticked()); n != 100 {
			t.Errorf("%d ticks in 3 s, want 100", n)
		}
	})
}

// counted counts how often its connections are read.
type counted struct {
	transport.Network
	reads atomic.Int64
}

func (n *counted) ListenPacket(addr string) (transport.PacketConn, error) {
	pc, err := n.Network.ListenPacket(addr)
	return &countedConn{pc, n}, err
}

type countedConn struct {
	transport.PacketConn
	network *counted
}

func (c *countedConn) ReadFrom(b []byte) (int, netip.AddrPort, error) {
	c.network.reads.Add(1)
	return c.PacketConn.ReadFrom(b)
}

// TestIdleConnectionSleeps: each second there are a heartbeat of its own, one of the peer, and the
// moments at which it has been silent for too long.
func TestIdleConnectionSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, simnet.Config{Delay: 10 * time.Millisecond})
		l := listen(t, serverAddr, transport.Config{Network: n}, &recorder{t: t})
		count := &counted{Network: n}
		dial(t, l.Addr(), transport.Config{Network: count, Tick: transport.OnWake}, &recorder{t: t})
		time.Sleep(5 * time.Second)
		before := count.reads.Load()
		time.Sleep(10 * time.Second)
		if reads := count.reads.Load() - before; reads > 60 {
			t.Errorf("%d reads in 10 s", reads)
		}
	})
}

// fragile is a network whose connections take nothing after it is cut, but for those that are
// opened then.
type fragile struct {
	transport.Network
	opened, cut atomic.Int64
}

func (n *fragile) ListenPacket(addr string) (transport.PacketConn, error) {
	pc, err := n.Network.ListenPacket(addr)
	return &fragileConn{pc, n, n.opened.Add(1)}, err
}

type fragileConn struct {
	transport.PacketConn
	network *fragile
	number  int64
}

func (c *fragileConn) WriteTo(b []byte, to netip.AddrPort) (int, error) {
	if c.number <= c.network.cut.Load() {
		return 0, syscall.ENETUNREACH
	}
	return c.PacketConn.WriteTo(b, to)
}

// TestSocketFailover: a connection whose socket takes nothing any more goes on from another one, by
// itself, and from that one as long as it does.
func TestSocketFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, simnet.Config{Delay: 10 * time.Millisecond})
		server := &recorder{t: t}
		l := listen(t, serverAddr, transport.Config{Network: n}, server)
		brittle := &fragile{Network: n}
		c := dial(t, l.Addr(), transport.Config{Network: brittle, Tick: transport.OnWake}, &recorder{t: t})
		time.Sleep(time.Second)
		before := c.LocalAddr()
		brittle.cut.Store(3)
		time.Sleep(6 * time.Second)
		if opened := brittle.opened.Load(); opened != 4 || c.LocalAddr() == before {
			t.Fatalf("%d sockets were opened, want 4", opened)
		}
		if err := c.Send([]byte("here")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		opened, _, datagrams, _ := server.snapshot()
		if !slices.Equal(datagrams, []string{"here"}) || opened[0].RemoteAddr() != c.LocalAddr() {
			t.Errorf("the server got %q, and sends to %v", datagrams, opened[0].RemoteAddr())
		}
		if s := c.Stats(); s.SendFailed < 3 {
			t.Errorf("%+v", s)
		}
	})
}

func TestListenOnWake(t *testing.T) {
	l, err := transport.Listen("127.0.0.1:0", transport.Config{Tick: transport.OnWake})
	if err == nil {
		t.Error(errors.Join(errors.New("a listener without ticks"), l.Close()))
	}
}
