package transport

import (
	"net/netip"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/token"
)

// still is a packet connection without a network.
type still struct{ sent func(b []byte) }

func (s *still) ReadFrom([]byte) (int, netip.AddrPort, error) { panic("not read") }
func (s *still) WriteTo(p []byte, _ netip.AddrPort) (int, error) {
	s.sent(p)
	return len(p), nil
}
func (s *still) SetReadDeadline(time.Time) error { return nil }
func (s *still) LocalAddr() netip.AddrPort       { return netip.MustParseAddrPort("127.0.0.1:7000") }
func (s *still) Close() error                    { return nil }

// unheard is a handler that does nothing.
type unheard struct{}

func (unheard) Opened(*Conn)                      {}
func (unheard) Closed(*Conn, error)               {}
func (unheard) Datagram(*Conn, []byte, time.Time) {}
func (unheard) Message(*Conn, []byte, time.Time)  {}
func (unheard) Tick(time.Time)                    {}

// fill opens that many connections at a listener, one a microsecond.
func fill(tb testing.TB, l *Listener, pc *still, count int, now time.Time) time.Time {
	tb.Helper()
	d := &testListener{Listener: l, shard: l.shards[0], pc: pc, now: now}
	for i := range count {
		d.now = d.now.Add(time.Microsecond)
		d.visit(tb, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 4000), token.Token{}).open()
	}
	pc.sent = func([]byte) {}
	if conns := l.Stats().Conns; conns != count {
		tb.Fatalf("%d connections, want %d", conns, count)
	}
	return d.now
}

type oneNetwork struct{ pc PacketConn }

func (n oneNetwork) ListenPacket(string) (PacketConn, error) { return n.pc, nil }

func TestIdleConnectionsSendHeartbeatsAndTimeOut(t *testing.T) {
	pc := &still{}
	l, err := Listen("", Config{Network: oneNetwork{pc}, HandshakesPerNetwork: 100})
	if err != nil {
		t.Fatal(err)
	}
	s := l.shards[0]
	s.handler = unheard{}
	start := time.Now()
	now := fill(t, l, pc, 100, start)
	sent := 0
	pc.sent = func([]byte) { sent++ }
	for ; now.Sub(start) < 4500*time.Millisecond; now = now.Add(DefaultTick) {
		s.tick(now)
		s.outbox.write()
	}
	if sent != 400 {
		t.Errorf("%d heartbeats of 100 connections in 4.5 s, want 400", sent)
	}
	for ; now.Sub(start) < defaultTimeout+time.Second; now = now.Add(DefaultTick) {
		s.tick(now)
		s.outbox.write()
	}
	if n := l.Stats().Conns; n != 0 || s.timers.count != 0 || s.conns.len() != 0 || len(l.ids) != 0 || len(l.clients) != 0 {
		t.Errorf("%d connections and %d timers are left", n, s.timers.count)
	}
}
