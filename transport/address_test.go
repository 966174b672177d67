package transport_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/internal/wire"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// capturing is a network that records the packet connection that it opened last.
type capturing struct {
	transport.Network
	last transport.PacketConn
}

func (n *capturing) ListenPacket(addr string) (transport.PacketConn, error) {
	pc, err := n.Network.ListenPacket(addr)
	n.last = pc
	return pc, err
}

// from is a network whose packet connections all have one address.
type from struct {
	transport.Network
	addr string
}

func (n from) ListenPacket(string) (transport.PacketConn, error) {
	return n.Network.ListenPacket(n.addr)
}

// ask sends one datagram from an address of its own and returns the answer.
func ask(t *testing.T, n *simnet.Network, datagram []byte) []byte {
	t.Helper()
	pc, err := n.ListenPacket("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pc.Close() }()
	if _, err := pc.WriteTo(datagram, mustAddr(serverAddr)); err != nil {
		t.Fatal(err)
	}
	if err := pc.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, wire.MaxDatagram)
	size, _, err := pc.ReadFrom(buf)
	if err != nil {
		return nil
	}
	return buf[:size]
}

func TestForgedHint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		capture := &capturing{Network: newNetwork(t, good)}
		client := &recorder{t: t}
		l := listen(t, serverAddr, transport.Config{Network: capture}, &recorder{t: t})
		forger := capture.last // it has the listener's address
		capture.last = nil
		conn := dial(t, l.Addr(), transport.Config{Network: capture}, client)
		time.Sleep(time.Second)
		for i := range 1 << 12 { // some of them echo a packet number that was just sent
			echo := wire.Header{Kind: wire.DataKind, Number: uint32(i / 2)}
			if i%2 == 0 {
				echo.Long, echo.ID = true, conn.ID()
			}
			if _, err := forger.WriteTo(wire.AppendUnknown(nil, wire.Unknown{Echo: echo}), capture.last.LocalAddr()); err != nil {
				t.Fatal(err)
			}
			if i%100 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		time.Sleep(10 * time.Second)
		if _, closed, _, _ := client.snapshot(); len(closed) > 0 {
			t.Errorf("the client's connection ended: %v", closed[0].err)
		}
		if n := conn.Stats().DatagramsSent; n > 40 {
			t.Errorf("the client sent %d datagrams", n)
		}
	})
}

// TestOtherSender verifies that a client accepts datagrams only from the listener that it dialed.
func TestOtherSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		capture := &capturing{Network: newNetwork(t, good)}
		client := &recorder{t: t}
		l := listen(t, serverAddr, transport.Config{Network: capture.Network}, &recorder{t: t})
		dial(t, l.Addr(), transport.Config{Network: capture}, client)
		h := wire.Header{Kind: wire.DataKind, Number: 100}
		forged := append(wire.AppendHeader(nil, h), "forged, without a seal"...)
		to := capture.last.LocalAddr()
		other, err := capture.Network.ListenPacket("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = other.Close() }()
		if _, err := other.WriteTo(forged, to); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if _, _, datagrams, _ := client.snapshot(); len(datagrams) != 0 {
			t.Errorf("got %q", datagrams)
		}
	})
}

func TestHintsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, good)
		l := listen(t, serverAddr, transport.Config{Network: n}, &recorder{t: t})
		data := append(wire.AppendHeader(nil, wire.Header{Kind: wire.DataKind, Number: 77}), "a"...)
		answer := ask(t, n, data)
		if len(answer) != len(data) || !slices.Equal(answer[1:], data[:wire.ShortSize]) {
			t.Fatalf("answer %x", answer)
		}
		if answer := ask(t, n, data[:len(data)-1]); answer != nil {
			t.Errorf("%d bytes were answered by %x", len(data)-1, answer)
		}
		if answer := ask(t, n, append(wire.AppendHeader(nil, wire.Header{Kind: wire.CloseKind}), data...)); answer != nil {
			t.Errorf("a close was answered by %x", answer)
		}
		pc, err := n.ListenPacket("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = pc.Close() }()
		before := l.Stats().DatagramsSent
		for range 1000 {
			if _, err := pc.WriteTo(data, l.Addr()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		if sent := l.Stats().DatagramsSent - before; sent < 190 || sent > 210 {
			t.Errorf("%d hints in a second, want 100 and a burst of 100", sent)
		}
	})
}

// TestClientRestart restarts a client at the same address with the same client id.
func TestClientRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, good)
		w := &world{network: network, server: &recorder{t: t}, client: &recorder{t: t}}
		w.cfg = transport.Config{Network: from{network, "127.0.0.1:4000"}}
		w.listener = listen(t, serverAddr, transport.Config{Network: network}, w.server)
		w.cfg.Token = issue(t, 1)
		first := dial(t, w.listener.Addr(), w.cfg, w.client)
		old := w.serverConn(t)
		w.silently(t, good, func() { _ = first.Close() })

		w.cfg.Token = issue(t, 1)
		second := dial(t, w.listener.Addr(), w.cfg, &recorder{t: t})
		if e := ended(t, w.server, time.Second); e.conn != old || !errors.Is(e.err, transport.ErrReplaced) {
			t.Errorf("server: %+v", e)
		}
		_ = second.Send([]byte("new"))
		time.Sleep(time.Second)
		opened, _, datagrams, _ := w.server.snapshot()
		if len(opened) != 2 || opened[1].ID() != second.ID() || !slices.Equal(datagrams, []string{"new"}) {
			t.Errorf("server: %d opened, datagrams %q", len(opened), datagrams)
		}
		if n := w.listener.Stats().Conns; n != 1 {
			t.Errorf("%d connections", n)
		}
	})
}

// issue makes a token for the test's server.
func issue(t *testing.T, client uint64) token.Token {
	t.Helper()
	tok, err := token.Issue(token.Development().Issuer(), token.Claims{
		ClientID: client, Expires: time.Now().Add(time.Minute), Issued: time.Now(),
		Servers: []netip.AddrPort{mustAddr(serverAddr)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// TestForgedHello verifies that forged hellos from a client's address do not affect its connection.
func TestForgedHello(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		capture := &capturing{Network: newNetwork(t, good)}
		server, client := &recorder{t: t}, &recorder{t: t}
		l := listen(t, serverAddr, transport.Config{Network: capture.Network}, server)
		conn := dial(t, l.Addr(), transport.Config{Network: capture}, client)
		forger := capture.last // it has the client's address
		for nonce := range uint64(20) {
			hello := wire.Hello{Version: wire.Version, Nonce: 1000 + nonce}
			if nonce%2 == 1 {
				hello.Message = make([]byte, 300)
			}
			if _, err := forger.WriteTo(wire.AppendHello(nil, hello), l.Addr()); err != nil {
				t.Fatal(err)
			}
			_ = conn.Send([]byte("move"))
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		_, closed, datagrams, _ := server.snapshot()
		if len(closed) != 0 || len(datagrams) != 20 || l.Stats().Conns != 1 {
			t.Errorf("%d of 20 datagrams came, ended: %v", len(datagrams), closed)
		}
	})
}

func TestDialGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := transport.Config{Network: newNetwork(t, good), Timeout: 3 * time.Second}
		start := time.Now()
		_, err := transport.Dial(t.Context(), serverAddr, cfg, &recorder{t: t})
		if !errors.Is(err, transport.ErrTimeout) || time.Since(start) > 4*time.Second {
			t.Errorf("no listener: %v after %v", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		_, err = transport.Dial(ctx, serverAddr, cfg, &recorder{t: t})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("context: %v after %v", err, time.Since(start))
		}
	})
}
