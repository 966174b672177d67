package seal

import (
	"bytes"
	"net/netip"
	"testing"
	"time"
)

// FuzzOpen: what opens is what the sealer makes of the same plain text, header and number, and what
// does not open leaves the opener as it was.
func FuzzOpen(f *testing.F) {
	for _, suite := range realSuites {
		for _, number := range []uint64{5, 1<<EpochBits + 5} {
			sealed := NewSealer(suite, testSecrets.ToServer).Seal(nil, []byte("hdr"), []byte("plain text"), number)
			f.Add(uint8(suite), []byte("hdr"), sealed, number)
			f.Add(uint8(suite), []byte("hdr"), sealed[1:], number)
			f.Add(uint8(suite), []byte("hdr"), sealed[:5], number)
		}
	}
	f.Add(uint8(AES128GCM), []byte{}, []byte{}, uint64(1)<<63)
	f.Fuzz(func(t *testing.T, n uint8, header, sealed []byte, number uint64) {
		suite := realSuites[int(n)%len(realSuites)]
		s, o := NewSealer(suite, testSecrets.ToServer), NewOpener(suite, testSecrets.ToServer)
		first := s.Seal(nil, nil, []byte("first"), 0)
		plain, ok := o.Open([]byte("before"), header, sealed, number)
		if !bytes.HasPrefix(plain, []byte("before")) || !ok && len(plain) != len("before") {
			t.Fatalf("%v: opened %x", ok, plain)
		}
		if ok && !bytes.Equal(resealed(s, header, plain[len("before"):], number)[len(header):], sealed) {
			t.Fatalf("opened %x, which is not sealed like that", plain)
		}
		if _, ok := o.Open(nil, nil, first, 0); !ok {
			t.Fatal("number 0 does not open any more")
		}
	})
}

// FuzzResponderHello: only the genuine hello is taken.
func FuzzResponderHello(f *testing.F) {
	v := readVectors(f).Handshake[1]
	f.Add([]byte(v.Hello))
	f.Add([]byte(v.Hello[:HandshakeOverhead]))
	f.Add([]byte(v.Welcome))
	f.Add(make([]byte, 64))
	key := NewStaticKey([32]byte(v.Static))
	f.Fuzz(func(t *testing.T, msg []byte) {
		r := NewResponder(nil, key, v.Prologue)
		payload, err := r.Hello(msg)
		if (err == nil) != bytes.Equal(msg, v.Hello) {
			t.Fatalf("hello %x: %v", msg, err)
		}
		if err == nil && !bytes.Equal(payload, v.HelloPayload) {
			t.Fatalf("payload %x", payload)
		}
	})
}

// FuzzInitiatorWelcome: only the genuine welcome is taken, and it is taken after any other message.
func FuzzInitiatorWelcome(f *testing.F) {
	v := readVectors(f).Handshake[1]
	f.Add([]byte(v.Welcome))
	f.Add([]byte(v.Welcome[:HandshakeOverhead]))
	f.Add([]byte(v.Hello))
	f.Add(make([]byte, 64))
	f.Fuzz(func(t *testing.T, msg []byte) {
		i := NewInitiator(bytes.NewReader(v.ClientEphemeral), [32]byte(v.ServerPublic), v.Prologue)
		if _, err := i.Hello(nil, v.HelloPayload); err != nil {
			t.Fatal(err)
		}
		if _, _, err := i.Welcome(msg); (err == nil) != bytes.Equal(msg, v.Welcome) {
			t.Fatalf("welcome %x: %v", msg, err)
		} else if err == nil {
			return
		}
		if payload, _, err := i.Welcome(v.Welcome); err != nil || !bytes.Equal(payload, v.WelcomePayload) {
			t.Fatalf("after %x the right welcome: %x, %v", msg, payload, err)
		}
	})
}

// FuzzCookiesCheck: a cookie that is taken is the one that was made for that sender at the time in
// it.
func FuzzCookiesCheck(f *testing.F) {
	secrets := bytes.Repeat([]byte{7}, 64)
	at := cookieStart.Add(5 * time.Second)
	cookie := NewCookies(bytes.NewReader(secrets), cookieStart).Make(cookieAddr, 7, at)
	ip := cookieAddr.Addr().As4()
	f.Add(cookie[:], ip[:], cookieAddr.Port(), uint64(7), uint16(5001))
	f.Add(cookie[:], ip[:], cookieAddr.Port(), uint64(7), uint16(4999))
	f.Add(cookie[:], ip[:], cookieAddr.Port(), uint64(8), uint16(5001))
	f.Add(make([]byte, CookieSize), ip[:], uint16(0), uint64(0), uint16(0))
	f.Fuzz(func(t *testing.T, b, ip []byte, port uint16, nonce uint64, ms uint16) {
		if len(b) < CookieSize {
			return
		}
		cookie, now := [CookieSize]byte(b), cookieStart.Add(time.Duration(ms%60_000)*time.Millisecond)
		addr, _ := netip.AddrFromSlice(ip) // the zero address is one that can be asked about too
		from := netip.AddrPortFrom(addr, port)
		c := NewCookies(bytes.NewReader(secrets), cookieStart)
		got := c.Check(cookie, from, nonce, now)
		want := false
		for age := time.Duration(0); age <= CookieLife && !want; age += time.Millisecond {
			made := now.Add(-age)
			if ms := uint32(made.Sub(cookieStart).Milliseconds()); [4]byte(cookie[:4]) == [4]byte{byte(ms >> 24), byte(ms >> 16), byte(ms >> 8), byte(ms)} {
				want = c.Make(from, nonce, made) == cookie
			}
		}
		if got != want {
			t.Fatalf("cookie %x of %v, nonce %d, at %v: %v, want %v", cookie, from, nonce, now, got, want)
		}
	})
}
