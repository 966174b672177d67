package transport

import (
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport/internal/session"
	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// TestSpoofedHellosTakeNoMemory sends hellos from as many addresses, a third of them with a message
// and a third with a cookie too, and sealed datagrams of no session.
func TestSpoofedHellosTakeNoMemory(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector takes memory")
	}
	const count, budget = 300_000, 16 << 10
	d := newTestListener(t, Config{})
	honest := d.visit(t, clientAddr, token.Token{}).open()
	message := make([]byte, 300)
	var buf [wire.MaxDatagram]byte
	throw := func(i int) {
		from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), uint16(i))
		h := wire.Hello{Version: wire.Version, Nonce: uint64(i)}
		if i%3 > 0 {
			h.Message = message
		}
		if i%3 > 1 {
			h.Cookie[i%len(h.Cookie)] = byte(1 + i%255)
		}
		d.receive(d.now, datagram{from, wire.AppendHello(buf[:0], h)})
		stray := wire.AppendHeader(buf[:0], wire.Header{Kind: wire.DataKind, Long: i%2 == 0, ID: uint64(i), Number: uint32(i)})
		d.receive(d.now, datagram{from, append(stray, message[:40]...)})
		d.now = d.now.Add(10 * time.Microsecond)
	}
	throw(2) // what is made once
	before := heap()
	for i := range count {
		throw(i)
	}
	grown := heap() - before
	t.Logf("%.0f bytes after %d hellos and as many datagrams of no session", grown, count)
	if grown > budget {
		t.Errorf("the heap grew by %.0f bytes, want at most %d", grown, budget)
	}
	s := d.Stats()
	if s.Conns != 1 || s.BytesSent > s.BytesReceived || s.Dropped.Cookie != count/3+1 || s.Dropped.UnknownSession != count+1 {
		t.Errorf("%+v", s)
	}
	if g := d.visit(t, place(0), token.Token{}); g.State() != session.Open || honest.State() != session.Open {
		t.Errorf("an honest client: %v, one that was there: %v", g.Err(), honest.Err())
	}
	runtime.KeepAlive(honest)
}
