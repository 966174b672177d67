package udp

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
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

func TestExchange(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(addr, func(t *testing.T) {
			a, b := open(t, addr), open(t, addr)
			if _, err := a.WriteTo([]byte("over"), b.LocalAddr()); err != nil {
				t.Fatal(err)
			}
			var buf [16]byte
			n, from, err := b.ReadFrom(buf[:])
			if err != nil || string(buf[:n]) != "over" || from != a.LocalAddr() {
				t.Errorf("got %q from %v, %v, want %q from %v", buf[:n], from, err, "over", a.LocalAddr())
			}
		})
	}
}

func TestIPv4OverBothFamilies(t *testing.T) {
	both, four := open(t, ":0"), open(t, "127.0.0.1:0")
	to := netip.AddrPortFrom(four.LocalAddr().Addr(), both.LocalAddr().Port())
	if _, err := four.WriteTo([]byte("?"), to); err != nil {
		t.Fatal(err)
	}
	var buf [16]byte
	_, from, err := both.ReadFrom(buf[:])
	if err != nil || from != four.LocalAddr() {
		t.Fatalf("got a datagram from %v, %v, want %v", from, err, four.LocalAddr())
	}
	if _, err := both.WriteTo([]byte("!"), from); err != nil {
		t.Fatal(err)
	}
	if n, _, err := four.ReadFrom(buf[:]); err != nil || string(buf[:n]) != "!" {
		t.Errorf("got %q, %v", buf[:n], err)
	}
}

func TestReadEnds(t *testing.T) {
	c := open(t, "127.0.0.1:0")
	var buf [16]byte
	if err := c.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.ReadFrom(buf[:]); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.ReadFrom(buf[:]); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// refused returns a connected socket that has sent to a port where nobody listened, and another one
// that is there now. The report of it must not look like an end of the socket.
func refused(t *testing.T) (c, back *Conn) {
	t.Helper()
	gone := open(t, "127.0.0.1:0")
	addr := gone.LocalAddr()
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	socket, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(addr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	if c, err = newConn(socket); err != nil {
		t.Fatal(err)
	}
	if _, err := socket.Write([]byte("?")); err != nil {
		t.Fatal(err)
	}
	return c, open(t, addr.String())
}

func TestRefusedIsTransient(t *testing.T) {
	c, back := refused(t)
	if _, err := back.WriteTo([]byte("!"), c.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	var buf [16]byte
	if n, _, err := c.ReadFrom(buf[:]); err != nil || string(buf[:n]) != "!" {
		t.Errorf("got %q, %v, want what came after the report", buf[:n], err)
	}
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

func TestNoAllocation(t *testing.T) {
	a, b := open(t, "127.0.0.1:0"), open(t, "127.0.0.1:0")
	payload, buf, to := make([]byte, 16), make([]byte, 1200), b.LocalAddr()
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := a.WriteTo(payload, to); err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.ReadFrom(buf); err != nil {
			t.Fatal(err)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations a datagram, want 0", allocs)
	}
}

func BenchmarkExchange(b *testing.B) {
	from, to := open(b, "127.0.0.1:0"), open(b, "127.0.0.1:0")
	payload, buf, addr := make([]byte, 16), make([]byte, 1200), to.LocalAddr()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := from.WriteTo(payload, addr); err != nil {
			b.Fatal(err)
		}
		if _, _, err := to.ReadFrom(buf); err != nil {
			b.Fatal(err)
		}
	}
}
