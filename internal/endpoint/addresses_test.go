package endpoint_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/transport/udp"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

var (
	ipv4, ipv6 = netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1")
	third      = netip.MustParseAddr("::2")
)

// TestNameWithSeveralAddresses dials a name whose server runs at one of its addresses.
func TestNameWithSeveralAddresses(t *testing.T) {
	for _, c := range []struct {
		name   string
		server netip.Addr
		ips    []netip.Addr
		after  time.Duration // at least, without the handshake
	}{
		{"first of two", ipv6, []netip.Addr{ipv6, ipv4}, 0},
		{"second of two", ipv4, []netip.Addr{ipv6, ipv4}, 250 * time.Millisecond},
		{"IPv4 first", ipv6, []netip.Addr{ipv4, ipv6}, 250 * time.Millisecond},
		{"families alternate", ipv4, []netip.Addr{third, ipv6, ipv4}, 250 * time.Millisecond},
		{"third", ipv6, []netip.Addr{third, ipv6, ipv4}, 500 * time.Millisecond},
		{"one address twice", ipv4, []netip.Addr{ipv6, ipv6, ipv4}, 250 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				endpoint.SetAddresses(t, c.ips...)
				n := newNetwork(t, simnet.Config{Delay: 10 * time.Millisecond})
				l := listen(t, netip.AddrPortFrom(c.server, 7000).String(), endpoint.Config{Network: n, Insecure: true}, &recorder{t: t})
				start := time.Now()
				conn, err := endpoint.Dial(t.Context(), "game.example:7000", endpoint.Config{Network: n, Insecure: true}, &recorder{t: t})
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took < c.after || took > c.after+100*time.Millisecond || conn.RemoteAddr() != l.Addr() {
					t.Errorf("connected to %v after %v, want %v after %v", conn.RemoteAddr(), took, l.Addr(), c.after)
				}
				_ = conn.Close()
			})
		})
	}
}

// TestOneServerSeesToken dials a name of two servers that take the same token, on a path that is so
// long that both are tried: only the one that answers first sees the token.
func TestOneServerSeesToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endpoint.SetAddresses(t, ipv6, ipv4)
		n := newNetwork(t, simnet.Config{Delay: 200 * time.Millisecond})
		key, err := token.NewKey()
		if err != nil {
			t.Fatal(err)
		}
		tok := issue(t, key, func(c *token.Claims) {
			c.Issued, c.Servers = time.Now().Add(time.Second), []netip.AddrPort{netip.AddrPortFrom(ipv4, 7000), netip.AddrPortFrom(ipv6, 7000)}
		})
		first := listen(t, "[::1]:7000", endpoint.Config{Network: n, Key: key}, &recorder{t: t})
		second := listen(t, "127.0.0.1:7000", endpoint.Config{Network: n, Key: key}, &recorder{t: t})
		conn, err := endpoint.Dial(t.Context(), "game.example:7000", endpoint.Config{Network: n, Token: tok}, &recorder{t: t})
		if err != nil || conn.RemoteAddr() != first.Addr() {
			t.Fatal(conn, err)
		}
		time.Sleep(5 * time.Second)
		if a, b := first.Stats(), second.Stats(); a.Open != 1 || b.Conns != 0 || b.DatagramsReceived == 0 {
			t.Errorf("sessions of the first %d, of the second %d, which received %d datagrams", a.Open, b.Conns, b.DatagramsReceived)
		}
		_ = conn.Close()
	})
}

// TestErrorsNameAddresses dials a name with two addresses at which nothing answers.
func TestErrorsNameAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endpoint.SetAddresses(t, ipv6, ipv4)
		cfg := endpoint.Config{Network: newNetwork(t, simnet.Config{Delay: 10 * time.Millisecond}), Insecure: true}
		start := time.Now()
		_, err := endpoint.Dial(t.Context(), "game.example:7000", cfg, &recorder{t: t})
		if !errors.Is(err, transport.ErrTimeout) || err.Error() != "[::1]:7000: timed out; 127.0.0.1:7000: timed out" {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = endpoint.Dial(ctx, "game.example:7000", cfg, &recorder{t: t})
		for _, want := range []string{"[::1]:7000: no answer from the server", "127.0.0.1:7000: no answer from the server"} {
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
		_, err = endpoint.Dial(ctx, "game.example:7000", cfg, &recorder{t: t})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a context that is done: %v", err)
		}
	})
}

// TestNoServer dials a port of this machine that nobody has: the system reports it, so the test
// needs no time limit of its own. With a name, the other address is tried at once.
func TestNoServer(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "windows" {
		t.Skip("the system does not report it")
	}
	l, err := endpoint.Listen("127.0.0.1:0", endpoint.Config{})
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr()
	_ = l.Close()
	cfg := endpoint.Config{Timeout: time.Hour}
	_, err = endpoint.Dial(t.Context(), addr.String(), cfg, echo{})
	if !errors.Is(err, transport.ErrNoServer) || runtime.GOOS == "linux" && !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v", err)
	}
	endpoint.SetAddresses(t, ipv4, netip.MustParseAddr("127.0.0.3"))
	l = listen(t, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.3"), addr.Port()).String(), endpoint.Config{}, echo{})
	conn, err := endpoint.Dial(t.Context(), netip.AddrPortFrom(ipv4, l.Addr().Port()).String(), cfg, echo{})
	if !errors.Is(err, transport.ErrNoServer) {
		t.Errorf("an address of another server: %v, %v", conn, err)
	}
	host := "game.example:" + strings.TrimPrefix(l.Addr().String(), "127.0.0.3:")
	conn, err = endpoint.Dial(t.Context(), host, cfg, echo{})
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}

// desertedNetwork is a network that reports for each first datagram that no program receives it.
type desertedNetwork struct{ transport.Network }

func (n desertedNetwork) ListenPacket(addr string) (transport.PacketConn, error) {
	pc, err := n.Network.ListenPacket(addr)
	return &deserted{PacketConn: pc}, err
}

type deserted struct {
	transport.PacketConn
	told bool
}

func (*deserted) ReportRefused(bool) {}

func (c *deserted) ReadFrom(p []byte) (int, netip.AddrPort, error) {
	if !c.told {
		c.told = true
		return 0, netip.AddrPort{}, udp.ErrRefused
	}
	return c.PacketConn.ReadFrom(p)
}

// TestNoServerAtAnyAddress dials a name whose addresses are all refused: the attempt ends.
func TestNoServerAtAnyAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endpoint.SetAddresses(t, netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"))
		n := newNetwork(t, simnet.Config{Delay: 10 * time.Millisecond})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		_, err := endpoint.Dial(ctx, "game.example:7000", endpoint.Config{Network: desertedNetwork{n}, Insecure: true}, &recorder{t: t})
		if took := time.Since(start); !errors.Is(err, transport.ErrNoServer) || took > 2*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

// TestZone dials an address with a zone that it does not need, so that answers have none.
func TestZone(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the name of the loopback interface differs")
	}
	l := listen(t, "[::1]:0", endpoint.Config{}, echo{})
	for _, zone := range []string{"lo", "1"} {
		addr := netip.AddrPortFrom(l.Addr().Addr().WithZone(zone), l.Addr().Port())
		_ = dial(t, addr, endpoint.Config{Timeout: time.Hour}, echo{})
	}
}

// TestServerStartsAtRefusedAddress starts a server at an address that was refused, while another
// one does not answer.
func TestServerStartsAtRefusedAddress(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "windows" {
		t.Skip("the system does not report it")
	}
	silent, err := transport.UDP().ListenPacket("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	port := silent.LocalAddr().Port()
	endpoint.SetAddresses(t, netip.MustParseAddr("127.0.0.3"), ipv4)
	time.AfterFunc(600*time.Millisecond, func() {
		listen(t, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.3"), port).String(), endpoint.Config{}, echo{})
	})
	conn, err := endpoint.Dial(t.Context(), fmt.Sprint("game.example:", port), endpoint.Config{Timeout: time.Hour}, echo{})
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}
