package simnet_test

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("github.com/xtaci/kcp-go/v5.(*TimedSched).sched"),
		goleak.IgnoreTopFunction("github.com/xtaci/kcp-go/v5.(*TimedSched).prepend"))
}

func open(t *testing.T, n transport.Network, addr string) transport.PacketConn {
	t.Helper()
	pc, err := n.ListenPacket(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pc.Close() })
	return pc
}

func write(t *testing.T, pc transport.PacketConn, data string, to netip.AddrPort) {
	t.Helper()
	if n, err := pc.WriteTo([]byte(data), to); err != nil || n != len(data) {
		t.Fatalf("wrote %d bytes, %v", n, err)
	}
}

// expect reads one datagram, and checks it and how long it took.
func expect(t *testing.T, pc transport.PacketConn, data string, sender netip.AddrPort, took time.Duration) {
	t.Helper()
	start := time.Now()
	var buf [100]byte
	n, from, err := pc.ReadFrom(buf[:])
	if err != nil || string(buf[:n]) != data || from != sender {
		t.Fatalf("read %q from %v, %v, want %q from %v", buf[:n], from, err, data, sender)
	}
	if d := time.Since(start); d != took {
		t.Errorf("%q took %v, want %v", data, d, took)
	}
}

func TestNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := simnet.Config{Delay: 10 * time.Millisecond}
		down := simnet.Config{Delay: 30 * time.Millisecond}
		n, err := simnet.NewNetwork(up, down)
		if err != nil {
			t.Fatal(err)
		}
		server, client := open(t, n, ":7000"), open(t, n, "127.0.0.1:0")
		if server.LocalAddr() != netip.MustParseAddrPort("127.0.0.1:7000") {
			t.Errorf("server has %v", server.LocalAddr())
		}
		write(t, client, "a", server.LocalAddr())
		write(t, client, "", server.LocalAddr())
		expect(t, server, "a", client.LocalAddr(), up.Delay)
		expect(t, server, "", client.LocalAddr(), 0)
		write(t, server, "b", client.LocalAddr())
		expect(t, client, "b", server.LocalAddr(), down.Delay)

		if err := n.Set(down, up); err != nil {
			t.Fatal(err)
		}
		write(t, client, "c", server.LocalAddr())
		expect(t, server, "c", client.LocalAddr(), down.Delay)
		if err := n.Set(simnet.Config{Loss: 2}, up); err == nil {
			t.Error("a bad configuration was set")
		}
	})
}

func TestAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, err := simnet.NewNetwork(simnet.Config{}, simnet.Config{})
		if err != nil {
			t.Fatal(err)
		}
		a, b := open(t, n, "127.0.0.1:0"), open(t, n, "127.0.0.1:0")
		if a.LocalAddr() == b.LocalAddr() {
			t.Error("one address was given twice")
		}
		if _, err := n.ListenPacket(a.LocalAddr().String()); err == nil {
			t.Error("an address in use was given again")
		}
		for _, addr := range []string{"", "x", "x:y", "1.2.3.4:70000"} {
			if _, err := n.ListenPacket(addr); err == nil {
				t.Errorf("listened on %q", addr)
			}
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		write(t, b, "to nobody", a.LocalAddr())
		open(t, n, a.LocalAddr().String())
	})
}

// testEnds checks how a read ends without a datagram.
func testEnds(t *testing.T, pc transport.PacketConn) {
	t.Helper()
	var buf [1]byte
	read := func() error { _, _, err := pc.ReadFrom(buf[:]); return err }
	start := time.Now()
	if err := pc.SetReadDeadline(start.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := read(); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != time.Second {
		t.Errorf("deadline: %v after %v", err, time.Since(start))
	}
	if err := pc.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	result := make(chan error)
	go func() { result <- read() }()
	synctest.Wait()
	if err := pc.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := <-result; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("deadline in the past: %v", err)
	}
	if err := pc.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	go func() { result <- read() }()
	synctest.Wait()
	if err := pc.Close(); err != nil {
		t.Error(err)
	}
	if err := <-result; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Close: %v", err)
	}
	if _, err := pc.WriteTo(nil, pc.LocalAddr()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("write after Close: %v", err)
	}
}

func TestNetworkReadEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, err := simnet.NewNetwork(simnet.Config{}, simnet.Config{})
		if err != nil {
			t.Fatal(err)
		}
		testEnds(t, open(t, n, "127.0.0.1:0"))
	})
}

func TestWrapNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, err := simnet.NewNetwork(simnet.Config{}, simnet.Config{})
		if err != nil {
			t.Fatal(err)
		}
		out, in := simnet.Config{Delay: 10 * time.Millisecond}, simnet.Config{Delay: 30 * time.Millisecond}
		wrapped, err := simnet.WrapNetwork(n, out, in)
		if err != nil {
			t.Fatal(err)
		}
		server, client := open(t, n, ":7000"), open(t, wrapped, "127.0.0.1:0")
		write(t, client, "a", server.LocalAddr())
		expect(t, server, "a", client.LocalAddr(), out.Delay)
		write(t, server, "b", client.LocalAddr())
		expect(t, client, "b", server.LocalAddr(), in.Delay)

		if err := wrapped.Set(in, out); err != nil {
			t.Fatal(err)
		}
		write(t, client, "c", server.LocalAddr())
		expect(t, server, "c", client.LocalAddr(), in.Delay)

		far := simnet.Config{Delay: time.Second}
		if err := wrapped.Set(far, far); err != nil {
			t.Fatal(err)
		}
		write(t, client, "first", server.LocalAddr())
		if err := wrapped.Set(out, in); err != nil {
			t.Fatal(err)
		}
		write(t, client, "second", server.LocalAddr())
		expect(t, server, "first", client.LocalAddr(), far.Delay)
		expect(t, server, "second", client.LocalAddr(), 0)
		if err := wrapped.Set(in, out); err != nil {
			t.Fatal(err)
		}

		write(t, client, "last words", server.LocalAddr())
		testEnds(t, client)
		expect(t, server, "last words", client.LocalAddr(), 0)
		if err := wrapped.Set(out, in); err != nil {
			t.Errorf("Set with nothing open: %v", err)
		}
	})
}

func TestWrapChecksItsConfig(t *testing.T) {
	if _, err := simnet.WrapNetwork(nil, simnet.Config{Loss: 2}, simnet.Config{}); err == nil {
		t.Error("WrapNetwork took a bad configuration")
	}
	if _, err := simnet.WrapNetwork(nil, simnet.Config{}, simnet.Config{Loss: 2}); err == nil {
		t.Error("WrapNetwork took a bad configuration")
	}
	if _, err := simnet.NewNetwork(simnet.Config{Loss: 2}, simnet.Config{}); err == nil {
		t.Error("NewNetwork took a bad configuration")
	}
}

// A transport over a wrapped UDP socket, in real time.
func TestWrapUDP(t *testing.T) {
	wrapped, err := simnet.WrapNetwork(nil, simnet.Config{Jitter: time.Millisecond}, simnet.Config{Duplicate: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	server := open(t, transport.UDP(), "127.0.0.1:0")
	client := open(t, wrapped, "127.0.0.1:0")
	write(t, client, "hello", server.LocalAddr())
	var buf [100]byte
	n, from, err := server.ReadFrom(buf[:])
	if err != nil || string(buf[:n]) != "hello" || from != client.LocalAddr() {
		t.Fatalf("read %q from %v, %v", buf[:n], from, err)
	}
	write(t, server, "back", from)
	if n, _, err := client.ReadFrom(buf[:]); err != nil || string(buf[:n]) != "back" {
		t.Errorf("read %q, %v", buf[:n], err)
	}
}

func TestRebind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, err := simnet.NewNetwork(simnet.Config{}, simnet.Config{})
		if err != nil {
			t.Fatal(err)
		}
		server, client := open(t, n, "127.0.0.1:7000"), open(t, n, "127.0.0.1:4000")
		write(t, client, "one", server.LocalAddr())
		expect(t, server, "one", client.LocalAddr(), 0)
		outside, err := n.Rebind(client.LocalAddr())
		if err != nil || outside == client.LocalAddr() || client.LocalAddr().Port() != 4000 {
			t.Fatalf("%v, %v; the client is at %v", outside, err, client.LocalAddr())
		}
		write(t, server, "lost", netip.MustParseAddrPort("127.0.0.1:4000"))
		write(t, client, "two", server.LocalAddr())
		expect(t, server, "two", outside, 0)
		write(t, server, "three", outside)
		expect(t, client, "three", server.LocalAddr(), 0)
		if again, err := n.Rebind(client.LocalAddr()); err != nil || again == outside {
			t.Errorf("again: %v, %v", again, err)
		}
		if _, err := n.Rebind(outside); err == nil {
			t.Error("nothing is bound to the outer address")
		}
	})
}

// TestShareBottleneck checks that packets of two clients wait in one queue, and answers in another.
func TestShareBottleneck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 100 // bytes with headers
		n, err := simnet.NewNetwork(simnet.Config{Rate: 10 * size}, simnet.Config{Rate: 10 * size})
		if err != nil {
			t.Fatal(err)
		}
		n.ShareBottleneck()
		server, a, b := open(t, n, ":7000"), open(t, n, "127.0.0.1:0"), open(t, n, "127.0.0.1:0")
		data := strings.Repeat("x", size-28)
		write(t, a, data, server.LocalAddr())
		write(t, b, data, server.LocalAddr())
		expect(t, server, data, a.LocalAddr(), 100*time.Millisecond)
		expect(t, server, data, b.LocalAddr(), 100*time.Millisecond)
		write(t, server, data, a.LocalAddr())
		write(t, server, data, b.LocalAddr())
		write(t, a, data, server.LocalAddr())
		expect(t, server, data, a.LocalAddr(), 100*time.Millisecond)
		expect(t, a, data, server.LocalAddr(), 0)
		expect(t, b, data, server.LocalAddr(), 100*time.Millisecond)
	})
}
