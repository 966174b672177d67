package relay

import (
	"bytes"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/transport/wire"
	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
	"github.com/uplink-rpc/uplink/transport"
)

var (
	testKey = [32]byte{1, 2, 3}
	client4 = netip.MustParseAddrPort("203.0.113.7:40000")
	client6 = netip.MustParseAddrPort("[2001:db8::7]:40000")
	proxy4  = netip.MustParseAddrPort("10.0.0.1:7000")
	proxy6  = netip.MustParseAddrPort("[fd00::1]:7000")
)

func TestEnvelope(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := NewLink(testKey), NewLink(testKey)
		want := Envelope{
			Proxy:    rapid.SampledFrom([]netip.AddrPort{proxy4, proxy6}).Draw(t, "proxy"),
			Client:   rapid.SampledFrom([]netip.AddrPort{client4, client6}).Draw(t, "client"),
			Mark:     rapid.Uint64().Draw(t, "mark"),
			Datagram: rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "datagram"),
		}
		d := Direction(rapid.IntRange(0, 1).Draw(t, "direction"))
		envelope := a.Append([]byte("dst"), d, want)[3:]
		if len(envelope) > len(want.Datagram)+MaxOverhead {
			t.Fatalf("%d bytes in %d", len(want.Datagram), len(envelope))
		}
		got, ok := b.Open(d, want.Proxy, envelope)
		if !ok || got.Proxy != want.Proxy || got.Client != want.Client || got.Mark != want.Mark || !bytes.Equal(got.Datagram, want.Datagram) {
			t.Fatalf("%+v, %v", got, ok)
		}
		refused := func(what string, l *Link, d Direction, proxy netip.AddrPort, b []byte) {
			if _, ok := l.Open(d, proxy, b); ok {
				t.Fatalf("%s: accepted", what)
			}
		}
		refused("the other direction", b, 1-d, want.Proxy, envelope)
		refused("another key", NewLink([32]byte{9}), d, want.Proxy, envelope)
		refused("another address", b, d, netip.AddrPortFrom(client4.Addr(), want.Proxy.Port()), envelope)
		refused("another port", b, d, netip.AddrPortFrom(want.Proxy.Addr(), 7001), envelope)
		refused("shortened", b, d, want.Proxy, envelope[:rapid.IntRange(0, len(envelope)-1).Draw(t, "size")])
		bit := rapid.IntRange(0, 8*len(envelope)-1).Draw(t, "bit")
		envelope[bit/8] ^= 1 << (bit % 8)
		refused("a flipped bit", b, d, want.Proxy, envelope)
	})
}

func TestMappedAddress(t *testing.T) {
	mapped := func(a netip.AddrPort) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr().As16()), a.Port())
	}
	l := NewLink(testKey)
	e, ok := l.Open(ToClient, proxy4, l.Append(nil, ToClient, Envelope{Proxy: mapped(proxy4), Client: mapped(client4)}))
	if !ok || e.Client != client4 {
		t.Errorf("%v, %v", e, ok)
	}
}

// TestVector is the layout in docs/spec/datagrams.md, with the HMAC of Python's hmac module.
func TestVector(t *testing.T) {
	want := []byte{
		4, 203, 0, 113, 7, 0x40, 0x9c, 1, 2, 3, 4, 5, 6, 7, 8, 'd', 'a', 't', 'a',
		0x9a, 0xd1, 0x72, 0x2b, 0x22, 0x53, 0xb7, 0x4e, 0x83, 0x53, 0xa8, 0x38, 0x6c, 0x8a, 0x31, 0xc8,
	}
	e := Envelope{Proxy: proxy4, Client: client4, Mark: 0x0807060504030201, Datagram: []byte("data")}
	if got := NewLink(testKey).Append(nil, ToClient, e); !bytes.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}

func TestWhatIsClear(t *testing.T) {
	hello := wire.AppendHello(nil, wire.Hello{Version: wire.Version, Route: []byte("eu-1")})
	other := wire.AppendHello(nil, wire.Hello{Version: wire.Version + 1})
	long := wire.AppendHeader(nil, wire.Header{Kind: wire.HeartbeatKind, Long: true, ID: wire.WithServer(^uint64(0), 7)})
	data := append(wire.AppendHeader(nil, wire.Header{Number: 5}), 1, 2, 3)
	if route, ok := Route(hello); !ok || string(route) != "eu-1" {
		t.Errorf("route %q, %v", route, ok)
	}
	if id, ok := ServerID(long); !ok || id != 7 {
		t.Errorf("server %d, %v", id, ok)
	}
	for _, b := range [][]byte{nil, other, long, data} {
		if route, ok := Route(b); ok {
			t.Errorf("%x has the route %q", b, route)
		}
	}
	for _, b := range [][]byte{nil, hello, data} {
		if id, ok := ServerID(b); ok {
			t.Errorf("%x has the server id %d", b, id)
		}
	}
	for _, c := range []struct {
		name     string
		b        []byte
		est, has bool // Established, and there is a hint
	}{
		{"data", data, true, true},
		{"short data", data[:2], true, false},
		{"with a connection id", long, true, false},
		{"challenge", append(wire.AppendHeader(nil, wire.Header{Kind: wire.ChallengeKind}), make([]byte, 8)...), false, true},
		{"close", append(wire.AppendHeader(nil, wire.Header{Kind: wire.CloseKind}), make([]byte, 20)...), true, false},
		{"hello", hello, false, false},
		{"retry", wire.AppendRetry(nil, wire.Retry{}), false, false},
		{"welcome", wire.AppendWelcome(nil, wire.Welcome{}), true, false},
		{"nothing", nil, false, false},
	} {
		hint, has := AppendHint(nil, c.b)
		if Established(c.b) != c.est || has != c.has || len(hint) > len(c.b) {
			t.Errorf("%s: established %v, hint %x, %v", c.name, Established(c.b), hint, has)
		}
	}
}

// FuzzProxy passes any bytes to what a proxy calls: no answer is longer than its cause, and only
// the envelope itself is accepted.
func FuzzProxy(f *testing.F) {
	l := NewLink(testKey)
	f.Add(wire.AppendHello(nil, wire.Hello{Version: wire.Version, Route: []byte("eu-1")}))
	f.Add(l.Append(nil, ToServer, Envelope{Proxy: proxy4, Client: client6, Datagram: []byte("datagram")}))
	f.Add(append(wire.AppendHeader(nil, wire.Header{Number: 5}), 1, 2, 3))
	f.Fuzz(func(t *testing.T, b []byte) {
		route, hello := Route(b)
		_, long := ServerID(b)
		hint, has := AppendHint(nil, b)
		if len(route) > wire.MaxRoute || hello && long || has && (hello || long) || len(hint) > len(b) {
			t.Fatalf("route %x, %v; server id %v; hint %x, %v", route, hello, long, hint, has)
		}
		Established(b)
		if e, ok := l.Open(ToServer, proxy4, b); ok && !bytes.Equal(l.Append(nil, ToServer, e), b) {
			t.Fatalf("%x is an envelope", b)
		}
	})
}

func TestNothingIsAllocated(t *testing.T) {
	l, buf := NewLink(testKey), make([]byte, 0, MaxDatagram+MaxOverhead)
	datagram := make([]byte, 100)
	check.NoAllocs(t, func() {
		for _, client := range []netip.AddrPort{client4, client6} {
			if _, ok := l.Open(ToServer, proxy6, l.Append(buf, ToServer, Envelope{proxy6, client, 5, datagram})); !ok {
				t.Fatal("not accepted")
			}
		}
	})
}

func BenchmarkEnvelope(b *testing.B) {
	l, buf, datagram := NewLink(testKey), make([]byte, 0, MaxDatagram+MaxOverhead), make([]byte, 60)
	b.ReportAllocs()
	for b.Loop() {
		l.Open(ToServer, proxy4, l.Append(buf, ToServer, Envelope{proxy4, client4, 5, datagram}))
	}
}

// memory is a socket that reads what a test puts there.
type memory struct {
	transport.PacketConn
	in  []packet
	out []packet // with the address that they are for
}

type packet struct {
	b    []byte
	from netip.AddrPort
}

func (m *memory) ListenPacket(string) (transport.PacketConn, error) { return m, nil }

func (m *memory) ReadFrom(p []byte) (int, netip.AddrPort, error) {
	if len(m.in) == 0 {
		return 0, netip.AddrPort{}, net.ErrClosed
	}
	next := m.in[0]
	m.in = m.in[1:]
	return copy(p, next.b), next.from, nil
}

func (m *memory) WriteTo(b []byte, to netip.AddrPort) (int, error) {
	m.out = append(m.out, packet{bytes.Clone(b), to})
	return len(b), nil
}

// TestProxies verifies that a server answers through the proxy of each client and returns its mark,
// ignores anything but envelopes for their source, and bounds what it remembers.
func TestProxies(t *testing.T) {
	l, m, log := NewLink(testKey), &memory{}, &strings.Builder{}
	pc := check.Value(Network(m, testKey, slog.New(slog.NewTextHandler(log, nil))).ListenPacket("any"))(t)
	proxies := []netip.AddrPort{proxy4, netip.MustParseAddrPort("10.0.0.2:7000")}
	if _, err := pc.WriteTo([]byte("x"), client4); err == nil {
		t.Error("written without a proxy")
	}
	envelope := func(d Direction, proxy int, client netip.AddrPort, mark uint64, b string) []byte {
		return l.Append(nil, d, Envelope{proxies[proxy], client, mark, []byte(b)})
	}
	m.in = []packet{
		{[]byte("no envelope"), client4},
		{envelope(ToServer, 0, client4, 7, "one"), proxies[0]},
		{envelope(ToClient, 0, client4, 8, "reflected"), proxies[0]},
		{envelope(ToServer, 1, client6, 9, "two"), proxies[1]},
		{envelope(ToServer, 0, client4, 7, "replayed"), netip.MustParseAddrPort("10.0.0.66:7000")},
		{envelope(ToServer, 0, client4, 7, "replayed"), netip.MustParseAddrPort("10.0.0.1:7001")},
		{envelope(ToServer, 0, client4, 7, "replayed"), proxies[1]},
	}
	buf := make([]byte, 100)
	for i, want := range []struct {
		client netip.AddrPort
		b      string
	}{{client4, ""}, {client4, "one"}, {proxies[0], ""}, {client6, "two"}, {m.in[4].from, ""}, {m.in[5].from, ""}, {proxies[1], ""}} {
		if n, from, err := pc.ReadFrom(buf); err != nil || from != want.client || string(buf[:n]) != want.b {
			t.Fatalf("datagram %d: %q from %v, %v", i, buf[:n], from, err)
		}
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "datagrams=1 source="+client4.String()) {
		t.Errorf("logged: %s", text)
	}
	for i, client := range []netip.AddrPort{client4, client6, netip.MustParseAddrPort("192.0.2.1:1")} {
		check.Value(pc.WriteTo([]byte("answer"), client))(t)
		want := proxies[min(i, 1)]
		e, ok := l.Open(ToClient, want, m.out[i].b)
		if m.out[i].from != want || !ok || e.Client != client || e.Mark != []uint64{7, 9, 0}[i] || string(e.Datagram) != "answer" {
			t.Errorf("%v: by %v, want %v; %+v, %v", client, m.out[i].from, want, e, ok) // an unknown client: the last proxy
		}
	}
	c := pc.(*conn)
	for i := range 3 * maxClients {
		client := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 1)
		c.learn(Envelope{Proxy: proxies[0], Client: client}, netip.Addr{})
	}
	if n := len(c.clients) + len(c.older); n > 2*maxClients {
		t.Errorf("%d clients are remembered", n)
	}
	if _, err := pc.WriteTo(make([]byte, MaxDatagram+1), client4); err == nil {
		t.Error("too long a datagram is written")
	}
}

// batches is a memory that reads and writes batches, and rejects what goes to a port 9.
type batches struct{ *memory }

func (m batches) ListenPacket(string) (transport.PacketConn, error) { return m, nil }

func (m batches) ReadBatch(into []transport.Datagram) (n int, err error) {
	for n < len(into) && len(m.in) > 0 {
		if into[n].N, into[n].Addr, err = m.ReadFrom(into[n].Buf); err != nil {
			return n, err
		}
		n++
	}
	if n == 0 {
		return 0, net.ErrClosed
	}
	return n, nil
}

func (m batches) WriteBatch(out []transport.Datagram) (int, error) {
	for i := range out {
		if out[i].Addr.Port() == 9 {
			return i, net.ErrClosed
		}
		if _, err := m.WriteTo(out[i].Bytes(), out[i].Addr); err != nil {
			return i, err
		}
	}
	return len(out), nil
}

// TestBatches verifies that batches keep their order, and that the count of a batch with a failure
// is that of the datagrams before it.
func TestBatches(t *testing.T) {
	l, m := NewLink(testKey), batches{&memory{}}
	pc := check.Value(Network(m, testKey, nil).ListenPacket("any"))(t).(transport.BatchConn)
	good, bad := netip.MustParseAddrPort("10.0.0.1:7000"), netip.MustParseAddrPort("10.0.0.1:9")
	at := func(i int) netip.AddrPort { return netip.AddrPortFrom(client4.Addr(), uint16(i)) }
	const n = 200
	for i := range n {
		proxy := good
		if i == 150 {
			proxy = bad
		}
		e := Envelope{Proxy: proxy, Client: at(i), Datagram: []byte{byte(i)}}
		m.in = append(m.in, packet{[]byte("no envelope"), good}, packet{l.Append(nil, ToServer, e), proxy})
	}
	var got []transport.Datagram
	for len(got) < 2*n {
		into := make([]transport.Datagram, 50)
		for i := range into {
			into[i].Buf = make([]byte, 100)
		}
		read := check.Value(pc.ReadBatch(into))(t)
		got = append(got, into[:read]...)
	}
	for i := range n { // every other one is no envelope
		if got[2*i].Addr != good || len(got[2*i].Bytes()) != 0 {
			t.Fatalf("no envelope: %x from %v", got[2*i].Bytes(), got[2*i].Addr)
		}
		got[i] = got[2*i+1]
	}
	got = got[:n]
	for i := range got {
		if got[i].Addr != at(i) || !bytes.Equal(got[i].Bytes(), []byte{byte(i)}) {
			t.Fatalf("datagram %d: %x from %v", i, got[i].Bytes(), got[i].Addr)
		}
	}
	if _, err := pc.ReadBatch(got[:1]); err == nil {
		t.Error("read without datagrams")
	}
	if sent, err := pc.WriteBatch(got); sent != 150 || err == nil || len(m.out) != 150 {
		t.Errorf("%d written, %d arrived, %v", sent, len(m.out), err)
	}
	if sent, err := pc.WriteBatch(got[151:]); sent != n-151 || err != nil {
		t.Errorf("%d written, %v", sent, err)
	}
	long := []transport.Datagram{got[0], {Buf: make([]byte, MaxDatagram+1), N: MaxDatagram + 1, Addr: at(0)}, got[1]}
	if sent, err := pc.WriteBatch(long); sent != 1 || err == nil {
		t.Errorf("%d written before one that is too long, %v", sent, err)
	}
}
