package ds_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
)

// The layouts of docs/spec/datagrams.md, as far as a client without a session needs them.
const (
	helloByte, retryByte, welcomeByte, refuseByte, unknownByte = 0x80, 0x81, 0x82, 0x83, 0x84

	longForm, dataForm = 1, 3 // in bits 6-7 of the first byte

	helloSize, cookieSize = 64, 24
	helloNonce            = 3
	helloCookie           = 11
	helloKey              = 35
	helloLength           = 40 // behind the length of the route, which is empty
	helloMessage          = 42
	retryCookie           = 9
)

// helloWith returns a hello for the key of the players' hellos.
func (s *scenario) helloWith(nonce uint64, cookie, message []byte) []byte {
	b := make([]byte, max(helloSize, helloMessage+len(message)))
	b[0] = helloByte
	binary.LittleEndian.PutUint16(b[1:], 4)
	binary.LittleEndian.PutUint64(b[helloNonce:], nonce)
	copy(b[helloCookie:helloCookie+cookieSize], cookie)
	for _, hello := range s.hello {
		copy(b[helloKey:], hello[helloKey:helloLength-1])
		break
	}
	binary.LittleEndian.PutUint16(b[helloLength:], uint16(len(message)))
	copy(b[helloMessage:], message)
	return b
}

// random returns n random bytes.
func (s *scenario) random(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(s.rng.Uint32())
	}
	return b
}

// many returns n, or less in short mode.
func many(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

// pace calls f n times during the attack. Its steps are random, as even ones would be in step with
// the server's limits.
func (s *scenario) pace(n int, f func(i int)) {
	steps := int(attackTime * 9 / 10 / ms)
	for k := range steps {
		for i := n * k / steps; i < n*(k+1)/steps; i++ {
			f(i)
		}
		time.Sleep(time.Duration(s.rng.Int64N(int64(2 * ms))))
	}
}

// place returns the i-th address of an attacker, each in a network of its own.
func place(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, byte(18 + i>>8&1), byte(i), byte(1 + i>>9)}), 4000)
}

// from opens a socket that is not watched.
func (s *scenario) from(addr netip.AddrPort) transport.PacketConn {
	pc, err := s.Network.Network.ListenPacket(addr.String())
	uplinktest.Must(s.t, err)
	return pc
}

// throw sends a datagram, which counts as tried.
func (s *scenario) throw(pc transport.PacketConn, to netip.AddrPort, b []byte) {
	s.tried++
	_, _ = pc.WriteTo(b, to)
}

// spoof sends a datagram to the server from an address that belongs to nobody.
func (s *scenario) spoof(from netip.AddrPort, b []byte) {
	pc := s.from(from)
	s.throw(pc, hostAddr, b)
	_ = pc.Close()
}

func spoofHellos(s *scenario) {
	s.pace(many(100_000), func(i int) { s.spoof(place(i%1000), s.helloWith(s.rng.Uint64(), nil, nil)) })
	s.served = s.tried // one retry each, without state
	s.checkConns()
}

func spoofCookies(s *scenario) {
	message := s.random(300)
	s.pace(many(100_000), func(i int) { s.spoof(place(i%1000), s.helloWith(s.rng.Uint64(), s.random(cookieSize), message)) })
	s.checkConns()
}

// checkConns counts connections that are neither players nor joiners as let in.
func (s *scenario) checkConns() {
	settle(100 * ms)
	if n := s.srv.Stats().Transport.Conns; n > len(s.addrs)+joiners {
		s.count(func(o *outcome) { o.in += uint64(n - len(s.addrs) - joiners) })
	}
}

// cookies requests a cookie for each socket.
func (s *scenario) cookies(sockets []transport.PacketConn, server netip.AddrPort, nonce func(i int) uint64) (cookies [][]byte) {
	for i, pc := range sockets {
		s.served++
		s.throw(pc, server, s.helloWith(nonce(i), nil, nil))
	}
	b := make([]byte, 1200)
	for _, pc := range sockets {
		uplinktest.Must(s.t, pc.SetReadDeadline(time.Now().Add(time.Second)))
		n, _, err := pc.ReadFrom(b)
		uplinktest.Must(s.t, err)
		if b[0] != retryByte || n != retryCookie+cookieSize {
			s.t.Fatalf("%x is no retry", b[:n])
		}
		cookies = append(cookies, bytes.Clone(b[retryCookie:n]))
	}
	return cookies
}

func unreadableHellos(s *scenario) {
	const networks = 100
	var own []transport.PacketConn
	for i := range networks {
		own = append(own, s.from(place(i)))
	}
	cookies := s.cookies(own, hostAddr, func(i int) uint64 { return uint64(i) })
	s.pace(many(20_000), func(i int) {
		s.throw(own[i%networks], hostAddr, s.helloWith(uint64(i%networks), cookies[i%networks], s.random(300)))
	})
	s.checkConns()
}

// handshakesOnly is a network that drops the datagrams of sessions.
type handshakesOnly struct{ transport.Network }

func (n handshakesOnly) ListenPacket(addr string) (transport.PacketConn, error) {
	pc, err := n.Network.ListenPacket(addr)
	return handshakeConn{pc}, err
}

type handshakeConn struct{ transport.PacketConn }

func (c handshakeConn) WriteTo(b []byte, to netip.AddrPort) (int, error) {
	if uplinktest.Kind(b) >= 0 {
		return len(b), nil
	}
	return c.PacketConn.WriteTo(b, to)
}

func slowHandshakes(s *scenario) {
	const networks = 100
	var all sync.WaitGroup
	s.pace(many(5000), func(i int) {
		s.tried++
		from := netip.AddrPortFrom(place(i%networks).Addr(), uint16(5000+i/networks))
		cfg := endpoint.Config{Network: handshakesOnly{at{s.Network, from.String()}}, Token: s.attacker()}
		all.Go(func() {
			ctx, cancel := context.WithTimeout(s.t.Context(), 140*ms) // before it repeats its hello
			defer cancel()
			if conn, err := endpoint.Dial(ctx, hostAddr.String(), cfg, &raw{t: s.t}); err == nil {
				s.count(func(*outcome) { s.served++ }) // a welcome, and 5 s to begin
				_ = conn.Close()
			}
		})
	})
	all.Wait()
	st := s.srv.Stats().Transport
	s.count(func(o *outcome) { o.in += uint64(max(0, st.Open-len(s.addrs)-joiners)) })
	if pending := st.Conns - st.Open; pending > 256 {
		s.t.Errorf("%d handshakes are pending", pending)
	}
}

// replayTokens presents the players' tokens again, to their server and to another one, and then
// their hellos with cookies of the attacker.
func replayTokens(s *scenario) {
	second := s.listen(secondAddr, ds.Config{})
	servers := []netip.AddrPort{hostAddr, secondAddr}
	var all sync.WaitGroup
	for i, tok := range s.tokens {
		for k, server := range servers {
			s.tried++
			all.Go(func() {
				cfg := client.Config{Token: tok, Network: at{s.Network, place(2*i + k).String()}}
				if conn, err := client.Dial(s.t.Context(), server.String(), cfg); err == nil {
					s.count(func(o *outcome) { o.in++ })
					_ = conn.Close()
				}
			})
		}
		time.Sleep(attackTime / 2 / time.Duration(len(s.addrs)))
	}
	all.Wait()
	for k, server := range servers {
		var own []transport.PacketConn
		for i := range s.addrs {
			own = append(own, s.from(place(200+2*i+k)))
		}
		nonce := func(i int) uint64 { return binary.LittleEndian.Uint64(s.hello[s.addrs[i]][helloNonce:]) }
		cookies := s.cookies(own, server, nonce)
		for i, addr := range s.addrs {
			hello := s.hello[addr]
			message := hello[helloMessage : helloMessage+int(binary.LittleEndian.Uint16(hello[helloLength:]))]
			s.throw(own[i], server, s.helloWith(nonce(i), cookies[i], message))
		}
	}
	settle(100 * ms)
	st := second.Stats().Transport
	s.elsewhere = map[string]uint64{"token of the other server": st.Dropped.Token}
	if st.Conns != 0 || st.Dropped.Total() != st.Dropped.Token {
		s.t.Errorf("the other server: %+v", st)
	}
}

// forge sends datagrams with random content to both ends of the players' sessions.
func forge(s *scenario) {
	server := s.Socket(hostAddr)
	s.pace(many(50_000), func(i int) {
		home := s.addrs[s.rng.IntN(len(s.addrs))]
		number := uint16(s.rng.IntN(400))
		b := append([]byte{byte(s.rng.IntN(8) << 3), byte(number), byte(number >> 8)}, s.random(20+s.rng.IntN(60))...)
		if i%2 == 0 {
			s.throw(s.Socket(home), hostAddr, b)
		} else {
			s.throw(server, home, b)
		}
	})
}

// forgeAnswers sends answers of a server to players. Half of the hints quote headers that the
// players have sent.
func forgeAnswers(s *scenario) {
	seen := map[netip.AddrPort][]byte{}
	var mu sync.Mutex
	s.Watch(func(from, _ netip.AddrPort, b []byte) {
		if s.isPlayer(from) && uplinktest.Kind(b) >= 0 && b[0]>>6 != longForm {
			mu.Lock()
			defer mu.Unlock()
			seen[from] = bytes.Clone(b[:uplinktest.HeaderSize(b)])
		}
	})
	settle(100 * ms)
	server := s.Socket(hostAddr)
	s.pace(many(50_000), func(i int) {
		home := s.addrs[s.rng.IntN(len(s.addrs))]
		mu.Lock()
		header := seen[home]
		mu.Unlock()
		if header == nil {
			header = []byte{dataForm << 6, 0}
		}
		switch i % 8 {
		case 0:
			s.throw(server, home, append([]byte{retryByte}, s.random(8+cookieSize)...))
		case 1:
			s.throw(server, home, append([]byte{welcomeByte}, s.random(66)...))
		case 2:
			s.throw(server, home, append([]byte{refuseByte}, s.random(9)...))
		case 3: // a hint about another session
			number := header[1:]
			if len(header) == 2 {
				number = []byte{header[1], header[0] & 0x3f}
			}
			s.throw(server, home, slices.Concat([]byte{unknownByte, longForm << 6}, s.random(8), number))
		default:
			s.throw(server, home, append([]byte{unknownByte}, header...))
		}
	})
	s.served = s.tried / 2 // a credible hint makes the client send long headers for a second
}

// flight is a datagram of a player's session that an on-path attacker has seen.
type flight struct {
	from, to netip.AddrPort
	b        []byte
}

// eavesdrop calls f for each datagram of the players' sessions before it is sent, for a time, with
// a lock.
func (s *scenario) eavesdrop(d time.Duration, f func(flight)) {
	var mu sync.Mutex
	s.Watch(func(from, to netip.AddrPort, b []byte) {
		if uplinktest.Kind(b) >= 0 && (s.isPlayer(from) && to == hostAddr || from == hostAddr && s.isPlayer(to)) {
			mu.Lock()
			defer mu.Unlock()
			f(flight{from, to, bytes.Clone(b)})
		}
	})
	settle(d)
	s.Watch(s.noteHello)
}

// sockets returns the sockets of the players and the server, to send from their addresses. It must
// be called before eavesdrop: a network cannot be asked while it is watched.
func (s *scenario) sockets() map[netip.AddrPort]transport.PacketConn {
	all := map[netip.AddrPort]transport.PacketConn{hostAddr: s.Socket(hostAddr)}
	for _, addr := range s.addrs {
		all[addr] = s.Socket(addr)
	}
	return all
}

// alter sends f of each datagram ahead of it, unless its content is nil.
func alter(f func(*scenario, flight) flight) func(*scenario) {
	return func(s *scenario) {
		sockets := s.sockets()
		s.eavesdrop(attackTime*9/10, func(d flight) {
			if d = f(s, d); d.b != nil {
				s.throw(sockets[d.from], d.to, d.b)
			}
		})
		settle(100 * ms)
	}
}

func double(_ *scenario, d flight) flight { return d }

func reflect(_ *scenario, d flight) flight { return flight{d.to, d.from, d.b} }

func truncate(s *scenario, d flight) flight {
	d.b = d.b[:s.rng.IntN(len(d.b))]
	return d
}

// flip flips any bit but those of the header's form.
func flip(s *scenario, d flight) flight {
	bit := 2 + s.rng.IntN(8*len(d.b)-2)
	d.b[bit/8] ^= 0x80 >> (bit % 8)
	return d
}

// cross sends a datagram of one player to another player's session. A long header would name the
// first session, so it is replaced by one without the id.
func cross(s *scenario, d flight) flight {
	other := s.addrs[s.rng.IntN(len(s.addrs))]
	switch {
	case other == d.from || other == d.to:
		d.b = nil
	case d.from == hostAddr:
		d.to = other
	default:
		d.from = other
		if d.b[0]>>6 != longForm {
			break
		}
		header := []byte{d.b[0] & 0x3f, d.b[9], d.b[10]}
		if uplinktest.Kind(d.b) == uplinktest.DataKind {
			header = []byte{dataForm<<6 | d.b[10]&0x3f, d.b[9]}
		}
		d.b = append(header, d.b[11:]...)
	}
	return d
}

func resend(s *scenario) {
	var seen []flight
	s.eavesdrop(attackTime/5, func(d flight) { seen = append(seen, d) })
	settle(50 * ms) // the originals arrive before their copies
	sockets := s.sockets()
	s.rng.Shuffle(len(seen), func(i, j int) { seen[i], seen[j] = seen[j], seen[i] })
	for range 10 {
		for i, d := range seen {
			s.throw(sockets[d.from], d.to, d.b)
			if i%100 == 99 {
				settle(ms)
			}
		}
	}
	settle(100 * ms)
}

// racedCopies sends a copy of each of the players' datagrams first, from another address. Forged
// hints make the players name their sessions.
func racedCopies(s *scenario) {
	thief, server := s.from(place(0)), s.Socket(hostAddr)
	s.eavesdrop(attackTime*9/10, func(d flight) {
		if d.from == hostAddr {
			return
		}
		s.throw(thief, hostAddr, d.b)
		if d.b[0]>>6 != longForm {
			_, _ = server.WriteTo(append([]byte{unknownByte}, d.b[:uplinktest.HeaderSize(d.b)]...), d.from)
		}
	})
	settle(100 * ms)
	uplinktest.Must(s.t, thief.Close())
}

// oldKeys sends the datagrams of a client's earlier session to both ends of its present one.
func oldKeys(s *scenario) {
	home := place(0)
	var mu sync.Mutex
	var seen []flight
	s.Watch(func(from, to netip.AddrPort, b []byte) {
		if uplinktest.Kind(b) >= 0 && (from == home || to == home) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, flight{from, to, bytes.Clone(b)})
		}
	})
	connect := func() *raw {
		return dialRawAt(s.t, hostAddr.String(), endpoint.Config{Network: at{s.Network, home.String()}, Token: s.issue(firstAttacker)}, 100*ms)
	}
	talk := func(c *raw, n int) {
		for range n {
			uplinktest.Must(s.t, c.Send([]byte{0xc0})) // counted as malformed
			settle(5 * ms)
		}
	}
	first := connect()
	talk(first, 100)
	uplinktest.Must(s.t, first.Close())
	settle(100 * ms)
	s.Watch(s.noteHello)
	second := connect()
	talk(second, 50)
	sockets := s.sockets()
	sockets[home] = s.Socket(home)
	dropped := second.Stats().Dropped.Total()
	for range 20 {
		for _, d := range seen {
			s.throw(sockets[d.from], d.to, d.b)
		}
		settle(10 * ms)
	}
	settle(100 * ms)
	s.elsewhere = map[string]uint64{"client": second.Stats().Dropped.Total() - dropped}
	talk(second, 1)
	uplinktest.Must(s.t, second.Send(nil))
	s.tried += 152 // the messages
}
