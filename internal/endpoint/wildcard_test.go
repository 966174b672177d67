package endpoint_test

import (
	"errors"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/token"
)

// TestAnswersFromDialedAddress dials addresses of a listener on a wildcard address, other than the
// one from which the system would answer: retries, welcomes, refusals of both kinds, challenges,
// payloads and hints come from the address that was dialed.
func TestAnswersFromDialedAddress(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("127.0.0.2 is not everywhere an address of the loopback interface")
	}
	key, err := token.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range []string{"0.0.0.0:0", "[::]:0", ":0"} {
		for _, shards := range []int{1, 2} {
			var names []netip.AddrPort
			l := listen(t, addr, endpoint.Config{Key: key, Addrs: []netip.AddrPort{}, Shards: shards}, handlers(shards)...)
			for _, ip := range []string{"127.0.0.2"} {
				names = append(names, netip.AddrPortFrom(netip.MustParseAddr(ip), l.Addr().Port()))
			}
			if err := l.SetAddrs(names...); err != nil {
				t.Fatal(err)
			}
			for i, name := range names {
				tok := issue(t, key, func(c *token.Claims) {
					c.ClientID, c.Servers, c.Issued = uint64(i+1), names, time.Now().Add(time.Second)
				})
				echoed := make(chan string, 100)
				conn := dial(t, name, endpoint.Config{Token: tok}, &recorder{t: t, onDatagram: func(_ *endpoint.Conn, b []byte) { echoed <- string(b) }})
				for _, payload := range []string{"first", "from another port"} {
					for got := ""; got != payload; { // datagrams may be lost while the listener validates the new address
						_ = conn.Send([]byte(payload))
						select {
						case got = <-echoed:
						case <-time.After(50 * time.Millisecond):
						}
					}
					if err := conn.Rebind(); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := endpoint.Dial(t.Context(), name.String(), endpoint.Config{Token: tok}, &recorder{t: t}); !errors.Is(err, token.ErrUsed) {
					t.Errorf("%v on %s: a token is used twice: %v", name, addr, err)
				}
				other, err := token.NewKey()
				if err != nil {
					t.Fatal(err)
				}
				tok = issue(t, other, func(c *token.Claims) { c.Servers = names })
				if _, err := endpoint.Dial(t.Context(), name.String(), endpoint.Config{Token: tok}, &recorder{t: t}); !errors.Is(err, token.ErrWrongKey) {
					t.Errorf("%v on %s: a token of another key: %v", name, addr, err)
				}
				expectHint(t, name)
			}
		}
	}
}

// handlers returns as many handlers that echo.
func handlers(n int) (all []endpoint.Handler) {
	for range n {
		all = append(all, echo{})
	}
	return all
}

// expectHint sends a datagram of no session, and expects the hint from the address to which it was
// sent: the socket receives from nowhere else.
func expectHint(t *testing.T, server netip.AddrPort) {
	t.Helper()
	socket, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(server))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	if _, err := socket.Write(append([]byte{0xd2, 0x34}, make([]byte, 40)...)); err != nil {
		t.Fatal(err)
	}
	_ = socket.SetReadDeadline(time.Now().Add(time.Minute))
	if n, err := socket.Read(make([]byte, 40)); err != nil || n == 0 {
		t.Errorf("no hint from %v: %v", server, err)
	}
}
