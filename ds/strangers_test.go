package ds_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
)

// The layouts of docs/SPEC.md, section 1, as far as a stranger needs them.
const (
	helloByte, retryByte, welcomeByte, refuseByte, unknownByte = 0x80, 0x81, 0x82, 0x83, 0x84

	helloSize, cookieSize = 64, 24
	helloNonce            = 3
	helloCookie           = 11
	helloLength           = 35
	helloMessage          = 37
	retryCookie           = 9
)

// helloWith makes a hello.
func helloWith(nonce uint64, cookie, message []byte) []byte {
	b := make([]byte, max(helloSize, helloMessage+len(message)))
	b[0] = helloByte
	binary.LittleEndian.PutUint16(b[1:], 2)
	binary.LittleEndian.PutUint64(b[helloNonce:], nonce)
	copy(b[helloCookie:helloCookie+cookieSize], cookie)
	binary.LittleEndian.PutUint16(b[helloLength:], uint16(len(message)))
	copy(b[helloMessage:], message)
	return b
}

// rubbish makes random bytes.
func (s *siege) rubbish(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(s.rng.Uint32())
	}
	return b
}

// many is n, or less where time is short.
func many(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

// pace calls f so often, spread over most of the siege.
func (s *siege) pace(n int, f func(i int)) {
	const step = time.Millisecond // in the mean: what is even would be in step with the server's limits
	steps := int(siegeTime * 9 / 10 / step)
	for k := range steps {
		for i := n * k / steps; i < n*(k+1)/steps; i++ {
			f(i)
		}
		time.Sleep(time.Duration(s.rng.Int64N(int64(2 * step))))
	}
}

// place is the i-th address of a stranger, each in a network of its own.
func place(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, byte(18 + i>>8&1), byte(i), byte(1 + i>>9)}), 4000)
}

// from opens a socket that nobody watches.
func (s *siege) from(addr netip.AddrPort) transport.PacketConn {
	pc, err := s.Network.Network.ListenPacket(addr.String())
	uplinktest.Must(s.t, err)
	return pc
}

// throw sends a datagram, which counts as tried.
func (s *siege) throw(pc transport.PacketConn, to netip.AddrPort, b []byte) {
	s.tried++
	_, _ = pc.WriteTo(b, to)
}

// spoof throws a datagram at the server from an address that belongs to nobody.
func (s *siege) spoof(from netip.AddrPort, b []byte) {
	pc := s.from(from)
	s.throw(pc, siegeAddr, b)
	_ = pc.Close()
}

// spoofHellos asks for cookies with the addresses of others.
func spoofHellos(s *siege) {
	s.pace(many(100_000), func(i int) { s.spoof(place(i%1000), helloWith(s.rng.Uint64(), nil, nil)) })
	s.served = s.tried // a retry each, and nothing is kept
	s.unnoticed()
}

// spoofCookies makes the cookies up too.
func spoofCookies(s *siege) {
	message := s.rubbish(300)
	s.pace(many(100_000), func(i int) { s.spoof(place(i%1000), helloWith(s.rng.Uint64(), s.rubbish(cookieSize), message)) })
	s.unnoticed()
}

// unnoticed counts connections that should not be there.
func (s *siege) unnoticed() {
	settle(100 * ms)
	if n := s.srv.Stats().Transport.Conns; n > len(s.addrs)+joiners {
		s.count(func(o *outcome) { o.in += uint64(n - len(s.addrs) - joiners) })
	}
}

// cookies asks for one with each of some addresses of one's own, all at once.
func (s *siege) cookies(own []transport.PacketConn, server netip.AddrPort, nonce func(i int) uint64) (cookies [][]byte) {
	for i, pc := range own {
		s.served++
		s.throw(pc, server, helloWith(nonce(i), nil, nil))
	}
	b := make([]byte, 1200)
	for _, pc := range own {
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

// rubbishHellos has the server try to read what nobody can, from many networks.
func rubbishHellos(s *siege) {
	const networks = 100
	var own []transport.PacketConn
	for i := range networks {
		own = append(own, s.from(place(i)))
	}
	cookies := s.cookies(own, siegeAddr, func(i int) uint64 { return uint64(i) })
	s.pace(many(20_000), func(i int) {
		s.throw(own[i%networks], siegeAddr, helloWith(uint64(i%networks), cookies[i%networks], s.rubbish(300)))
	})
	s.unnoticed()
}

// mute is a network that carries handshakes, and nothing of a session.
type mute struct{ transport.Network }

func (n mute) ListenPacket(addr string) (transport.PacketConn, error) {
	pc, err := n.Network.ListenPacket(addr)
	return muted{pc}, err
}

type muted struct{ transport.PacketConn }

func (m muted) WriteTo(b []byte, to netip.AddrPort) (int, error) {
	if b[0]>>7 == 0 {
		return len(b), nil
	}
	return m.PacketConn.WriteTo(b, to)
}

// slowHandshakes begins sessions with good tokens, and none of them comes to life.
func slowHandshakes(s *siege) {
	const networks = 100
	var all sync.WaitGroup
	s.pace(many(5000), func(i int) {
		s.tried++
		tok := s.enemy()
		cfg := transport.Config{Network: mute{at{s.Network, netip.AddrPortFrom(place(i%networks).Addr(), uint16(5000+i/networks)).String()}}, Token: tok}
		all.Go(func() {
			ctx, cancel := context.WithTimeout(s.t.Context(), 200*ms)
			defer cancel()
			if conn, err := transport.Dial(ctx, siegeAddr.String(), cfg, &raw{t: s.t}); err == nil {
				s.count(func(*outcome) { s.served++ }) // a welcome, and 5 s to begin
				_ = conn.Close()
			}
		})
	})
	all.Wait()
	st := s.srv.Stats().Transport
	s.count(func(o *outcome) { o.in += uint64(max(0, st.Open-len(s.addrs)-joiners)) })
	if pending := st.Conns - st.Open; pending > 256 {
		s.t.Errorf("%d handshakes wait", pending)
	}
}

// replayTokens shows the players' tokens again, to their server and to another one; and
// the hellos themselves, byte for byte but for the cookie, which is the thief's own.
func replayTokens(s *siege) {
	second := s.listen(secondAddr, ds.Config{})
	servers := []netip.AddrPort{siegeAddr, secondAddr}
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
		time.Sleep(siegeTime / 2 / time.Duration(len(s.addrs)))
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
			s.throw(own[i], server, helloWith(nonce(i), cookies[i], message))
		}
	}
	settle(100 * ms)
	st := second.Stats().Transport
	s.elsewhere = map[string]uint64{"token of the other server": st.Dropped.Token}
	if st.Conns != 0 || st.Dropped.Total() != st.Dropped.Token {
		s.t.Errorf("the other server: %+v", st)
	}
}

// forge throws datagrams at the server from the players' addresses, and at the players
// from the server's: an attacker who knows all addresses and where the numbers are, but no
// key.
func forge(s *siege) {
	server := s.Socket(siegeAddr)
	s.pace(many(50_000), func(i int) {
		home := s.addrs[s.rng.IntN(len(s.addrs))]
		number := uint16(s.rng.IntN(400))
		b := append([]byte{byte(s.rng.IntN(8) << 3), byte(number), byte(number >> 8)}, s.rubbish(20+s.rng.IntN(60))...)
		if i%2 == 0 {
			s.throw(s.Socket(home), siegeAddr, b)
		} else {
			s.throw(server, home, b)
		}
	})
}

// forgeAnswers throws handshake datagrams at players: hints, welcomes, refuses. The numbers
// that the hints echo are right, by eavesdropping, half of the time.
func forgeAnswers(s *siege) {
	seen := map[netip.AddrPort][3]byte{}
	var mu sync.Mutex
	s.Watch(func(from, to netip.AddrPort, b []byte) {
		if s.isPlayer(from) && b[0]>>6 == 0 {
			mu.Lock()
			defer mu.Unlock()
			seen[from] = [3]byte(b)
		}
	})
	settle(100 * ms)
	server := s.Socket(siegeAddr)
	s.pace(many(50_000), func(i int) {
		home := s.addrs[s.rng.IntN(len(s.addrs))]
		mu.Lock()
		header := seen[home]
		mu.Unlock()
		switch i % 8 {
		case 0:
			s.throw(server, home, append([]byte{retryByte}, s.rubbish(8+cookieSize)...))
		case 1:
			s.throw(server, home, append([]byte{welcomeByte}, s.rubbish(66)...))
		case 2:
			s.throw(server, home, append([]byte{refuseByte}, s.rubbish(9)...))
		case 3: // a hint that names a session that is not this one's
			s.throw(server, home, append([]byte{unknownByte, header[0] | 1<<6}, append(s.rubbish(8), header[1:]...)...))
		default:
			s.throw(server, home, append([]byte{unknownByte}, header[:]...))
		}
	})
	s.served = s.tried / 2 // a hint that may be true has the client name its session for a second
}
