package udp

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, addr string) *Conn {
	t.Helper()
	c, err := listen(addr, false)
	if err != nil {
		t.Skipf("no socket on %s: %v", addr, err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// openPair opens two sockets on a loopback address.
func openPair(t testing.TB) (a, b *Conn) {
	t.Helper()
	return open(t, "127.0.0.1:0"), open(t, "127.0.0.1:0")
}

// way is one of the two ways to send and to receive datagrams.
type way struct {
	write func(c *Conn, b []byte, to netip.AddrPort) error
	read  func(c *Conn, p []byte) (n int, from netip.AddrPort, err error)
}

var ways = map[string]way{
	"single": {
		func(c *Conn, b []byte, to netip.AddrPort) error {
			_, err := c.WriteTo(b, to)
			return err
		},
		(*Conn).ReadFrom,
	},
	"batch": {
		func(c *Conn, b []byte, to netip.AddrPort) error {
			_, err := c.WriteBatch([]Datagram{{Buf: b, N: len(b), Addr: to}})
			return err
		},
		func(c *Conn, p []byte) (n int, from netip.AddrPort, err error) {
			batch := []Datagram{{Buf: p}, {Buf: make([]byte, 16)}}
			_, err = c.ReadBatch(batch)
			return batch[0].N, batch[0].Addr, err
		},
	},
}

// bothWays runs a test for each way.
func bothWays(t *testing.T, test func(t *testing.T, w way)) {
	for name, w := range ways {
		t.Run(name, func(t *testing.T) { test(t, w) })
	}
}

// exchange sends a datagram and checks what arrives. It returns the sender.
func (w way) exchange(t *testing.T, from *Conn, to netip.AddrPort, at *Conn) netip.AddrPort {
	t.Helper()
	check.Must(t, w.write(from, []byte("over"), to))
	check.Must(t, at.SetReadDeadline(time.Now().Add(time.Minute))) // one may be lost, over loopback too
	var buf [16]byte
	n, addr, err := w.read(at, buf[:])
	if err != nil || string(buf[:n]) != "over" || addr.Port() != from.LocalAddr().Port() {
		t.Fatalf("got %q from %v, %v, want it from %v", buf[:n], addr, err, from.LocalAddr())
	}
	return addr
}

// TestExchange exchanges datagrams between sockets of one family, and with one of both.
func TestExchange(t *testing.T) {
	bothWays(t, func(t *testing.T, w way) {
		for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
			t.Run(addr, func(t *testing.T) {
				a, b, both := open(t, addr), open(t, addr), open(t, ":0")
				if from := w.exchange(t, a, b.LocalAddr(), b); from != a.LocalAddr() {
					t.Errorf("a datagram from %v, want %v", from, a.LocalAddr())
				}
				from := w.exchange(t, a, netip.AddrPortFrom(a.LocalAddr().Addr(), both.LocalAddr().Port()), both)
				if from != a.LocalAddr() {
					t.Errorf("a datagram from %v, want %v", from, a.LocalAddr())
				}
				w.exchange(t, both, from, a)
			})
		}
	})
}

// TestFamilies opens the wildcard addresses: 0.0.0.0 has IPv4 only, the others have both families.
func TestFamilies(t *testing.T) {
	six, four := open(t, "[::1]:0"), open(t, "127.0.0.1:0")
	for host, want := range map[string]string{"0.0.0.0:0": "4", "[::]:0": "64", ":0": "64"} {
		c := open(t, host)
		if c.LocalAddr().Addr().Is4() != (want == "4") {
			t.Errorf("%s is bound to %v", host, c.LocalAddr())
		}
		for _, from := range []*Conn{six, four} {
			family := map[bool]string{false: "6", true: "4"}[from == four]
			check.Value(from.WriteTo([]byte(family), netip.AddrPortFrom(from.LocalAddr().Addr(), c.LocalAddr().Port())))(t)
		}
		got := ""
		for !strings.HasSuffix(got, "4") {
			got += string(collect(t, c, 1, 1)[0].Bytes())
		}
		if got != want {
			t.Errorf("%s receives from families %q, want %q", host, got, want)
		}
	}
}

// TestMappedAddress: a socket of IPv4 alone takes the IPv4-mapped form of an address too.
func TestMappedAddress(t *testing.T) {
	a, b := openPair(t)
	to := b.LocalAddr()
	ways["batch"].exchange(t, a, netip.AddrPortFrom(netip.AddrFrom16(to.Addr().As16()), to.Port()), b)
}

func TestReadEnds(t *testing.T) {
	bothWays(t, func(t *testing.T, w way) {
		c := open(t, "127.0.0.1:0")
		check.Must(t, c.SetReadDeadline(time.Unix(1, 0)))
		if _, _, err := w.read(c, make([]byte, 16)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("after the deadline: %v", err)
		}
		check.Must(t, c.SetReadDeadline(time.Time{}))
		check.Must(t, c.Close())
		if _, _, err := w.read(c, make([]byte, 16)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		if err := w.write(c, []byte("!"), netip.MustParseAddrPort("127.0.0.1:9")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("write after Close: %v", err)
		}
	})
}

// TestWaitingReadEnds: a read that waits already is ended by a deadline, and the next one by Close.
// That it waits cannot be seen from outside; if it does not yet, the outcome is the same.
func TestWaitingReadEnds(t *testing.T) {
	c := open(t, "127.0.0.1:0")
	ended := make(chan error)
	go func() {
		for range 2 {
			_, err := c.ReadBatch(room(2, 16))
			ended <- err
		}
	}()
	runtime.Gosched()
	check.Must(t, c.SetReadDeadline(time.Unix(1, 0)))
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("at the deadline: %v", err)
	}
	check.Must(t, c.SetReadDeadline(time.Time{}))
	runtime.Gosched()
	check.Must(t, c.Close())
	// The second read may have begun before the deadline was lifted.
	if err := <-ended; !errors.Is(err, net.ErrClosed) && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("at Close: %v", err)
	}
}

// TestRefusedIsTransient reads after the report that nobody listened where a datagram was sent to.
// It must not look like an end of the socket.
func TestRefusedIsTransient(t *testing.T) {
	bothWays(t, func(t *testing.T, w way) {
		gone := open(t, "127.0.0.1:0")
		addr := gone.LocalAddr()
		check.Must(t, gone.Close())
		socket := check.Value(net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(addr)))(t)
		t.Cleanup(func() { _ = socket.Close() })
		c := check.Value(newConn(socket))(t)
		check.Value(socket.Write([]byte("?")))(t)
		w.exchange(t, open(t, addr.String()), c.LocalAddr(), c)
	})
}

func TestTransient(t *testing.T) {
	refused := &net.OpError{Op: "read", Err: os.NewSyscallError("recvfrom", syscall.ECONNRESET)}
	if !transient(refused) {
		t.Errorf("%v ends the socket", refused)
	}
	for _, err := range []error{net.ErrClosed, os.ErrDeadlineExceeded, syscall.EBADF} {
		if transient(err) {
			t.Errorf("%v does not end the read", err)
		}
	}
}
