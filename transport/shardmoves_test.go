package transport_test

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// sharded is a world whose listener has several shards.
type sharded struct {
	*world
	shards []*recorder
}

func newSharded(t *testing.T, link simnet.Config, cfg transport.Config, shards int) *sharded {
	t.Helper()
	w := &sharded{world: &world{network: newNetwork(t, link), client: &recorder{t: t}}}
	cfg.Network, cfg.Shards = w.network, shards
	w.cfg = cfg
	rs, handlers := recorders(t, shards)
	w.shards = rs
	w.listener = listen(t, serverAddr, cfg, handlers...)
	w.conn = dial(t, w.listener.Addr(), transport.Config{Network: w.network}, w.client)
	for w.server == nil {
		time.Sleep(10 * time.Millisecond)
		for _, r := range rs {
			if opened, _, _, _ := r.snapshot(); len(opened) > 0 {
				w.server = r
			}
		}
	}
	return w
}

// TestMovesBetweenShards moves a client about, so that its datagrams come to other shards than its
// own, over a link that loses, duplicates and reorders.
func TestMovesBetweenShards(t *testing.T) {
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			w := newSharded(t, bad(seed), transport.Config{}, 4)
			s := w.serverConn(t)
			const moves = 8
			for range moves {
				w.play(t, s, time.Second)
				outside, err := w.network.Rebind(w.conn.LocalAddr())
				if err != nil {
					t.Fatal(err)
				}
				if err := w.conn.SendReliable([]byte("moving")); err != nil {
					t.Fatal(err)
				}
				for tries := 0; s.RemoteAddr() != outside; tries++ { // losses can delay a round of challenges
					if tries == 20 {
						t.Fatalf("the server sends to %v, want %v", s.RemoteAddr(), outside)
					}
					w.play(t, s, 500*time.Millisecond)
				}
			}
			if n := w.play(t, s, time.Second); n < 20 {
				t.Errorf("%d of 60 datagrams came in the end", n)
			}
			time.Sleep(5 * time.Second)
			st := w.listener.Stats()
			if st.Open != 1 || st.Conns != 1 || st.Forwarded < 100 || st.Dropped.Overrun != 0 {
				t.Errorf("%+v", st)
			}
			if n := s.Stats().PathMigrations; n != moves {
				t.Errorf("%d moves, want %d", n, moves)
			}
			if _, _, _, messages := w.server.snapshot(); len(messages) != moves {
				t.Errorf("%d of %d messages came", len(messages), moves)
			}
			for _, r := range w.shards {
				if _, _, datagrams, _ := r.snapshot(); r != w.server && len(datagrams) > 0 {
					t.Error("another shard's handler got datagrams")
				}
			}
		})
	}
}

// TestForwardedAtOnce: a shard that has nothing else to do does not wait for its tick. The client,
// which hears the listener, does not name its session any more: the shard to which its datagrams
// come knows its address.
func TestForwardedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tick = 500 * time.Millisecond
		w := newSharded(t, good, transport.Config{Tick: tick}, 4)
		s := w.serverConn(t)
		came := make(chan time.Time, 1)
		w.server.onDatagram = func(_ *transport.Conn, b []byte) {
			if string(b) == "move" {
				came <- time.Now()
			}
		}
		for moved, tries := 0, 0; moved < 5; tries++ {
			if tries == 50 {
				t.Fatal("the client does not move")
			}
			if _, err := w.network.Rebind(w.conn.LocalAddr()); err != nil {
				t.Fatal(err)
			}
			w.play(t, s, 15*time.Second) // it names its session for 12 s after a challenge
			before := w.listener.Stats()
			time.Sleep(tick / 3) // anywhere between two ticks
			sent, bytes := time.Now(), w.conn.Stats().BytesSent
			if err := w.conn.Send([]byte("move")); err != nil {
				t.Fatal(err)
			}
			if n := w.conn.Stats().BytesSent - bytes; n != uint64(transport.HeaderSize+4+transport.AES128GCM.Overhead()) {
				t.Errorf("a datagram of %d bytes: the client names its session", n)
			}
			if flight := (<-came).Sub(sent); flight < 0 || flight > 2*good.Delay+time.Millisecond {
				t.Errorf("the datagram took %v, and the link %v", flight, good.Delay)
			}
			after := w.listener.Stats()
			if after.Forwarded > before.Forwarded {
				moved++
			}
			if after.Dropped != before.Dropped {
				t.Errorf("%+v, then %+v", before.Dropped, after.Dropped)
			}
		}
	})
}

// TestHelloMovesBetweenShards: a hello is known by another shard than the one that answered it
// first.
func TestHelloMovesBetweenShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, good)
		rs, handlers := recorders(t, 4)
		l := listen(t, serverAddr, transport.Config{Network: n, Shards: 4}, handlers...)
		for range 20 {
			m := &migrant{Network: n}
			dial(t, l.Addr(), transport.Config{Network: m}, &recorder{t: t})
		}
		time.Sleep(3 * time.Second)
		opened := 0
		for _, r := range rs {
			o, closed, _, _ := r.snapshot()
			opened += len(o)
			if len(closed) > 0 {
				t.Errorf("%v", closed[0].err)
			}
		}
		if s := l.Stats(); opened != 20 || s.Open != 20 || s.Conns != 20 || s.Forwarded == 0 {
			t.Errorf("%d opened, %+v", opened, s)
		}
	})
}

// migrant is a network on which the address of a client changes behind its back with each of its
// first hellos that has a cookie.
type migrant struct {
	*simnet.Network
	hellos int
}

func (m *migrant) ListenPacket(addr string) (transport.PacketConn, error) {
	pc, err := m.Network.ListenPacket(addr)
	return &migrating{pc, m}, err
}

type migrating struct {
	transport.PacketConn
	m *migrant
}

func (m *migrating) WriteTo(b []byte, to netip.AddrPort) (int, error) {
	n, err := m.PacketConn.WriteTo(b, to)
	if isHello := b[0]>>6 == 2; isHello && m.m.hellos < 4 {
		if m.m.hellos++; m.m.hellos%2 == 0 {
			_, _ = m.m.Rebind(m.LocalAddr())
		}
	}
	return n, err
}
