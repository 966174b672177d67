package transport_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// shardsOnly skips a test where the operating system does not spread datagrams.
func shardsOnly(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("one socket an address")
	}
}

// recorders makes so many handlers.
func recorders(t testing.TB, n int) ([]*recorder, []transport.Handler) {
	all, handlers := make([]*recorder, n), make([]transport.Handler, n)
	for i := range all {
		all[i] = &recorder{t: t}
		handlers[i] = all[i]
	}
	return all, handlers
}

// echoes is a handler that sends all datagrams back, and counts its connections.
type echoes struct {
	recorder
	left chan int
}

func (e *echoes) Closed(c *transport.Conn, err error) {
	e.recorder.Closed(c, err)
	e.left <- 1
}

// TestShards runs many clients over sockets of the operating system: each stays on one shard, each
// shard serves some of them, and datagrams are echoed. One of four shards gets none of 64 clients
// with a probability of 4e-8.
func TestShards(t *testing.T) {
	shardsOnly(t)
	const shards, clients, rounds = 4, 64, 20
	left := make(chan int, clients)
	handlers := make([]transport.Handler, shards)
	for i := range handlers {
		e := &echoes{recorder: recorder{t: t}, left: left}
		e.onDatagram = func(c *transport.Conn, b []byte) { _ = c.Send(fmt.Appendf(nil, "%s by %d", b, i)) }
		e.onMessage = func(c *transport.Conn, b []byte) { _ = c.SendReliable(b) }
		handlers[i] = e
	}
	cfg := transport.Config{Shards: shards, Handshakes: 1000, Timeout: patience}
	l := listen(t, "127.0.0.1:0", cfg, handlers...)
	if l.Shards() != shards {
		t.Fatalf("%d shards", l.Shards())
	}
	homes := make([]string, clients)
	joining := make(chan struct{}, shards) // few at a time: who is not heard within 5 s is forgotten
	var playing sync.WaitGroup
	for i := range clients {
		playing.Go(func() {
			joining <- struct{}{}
			joined := sync.OnceFunc(func() { <-joining })
			defer joined()
			came := make(texts, 16)
			c, err := transport.Dial(t.Context(), l.Addr().String(), cfg, came)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = c.Close() }()
			lost := again(t)
			for n := range rounds {
				sent := fmt.Sprintf("%d of %d", n, i)
				if err := errors.Join(c.Send([]byte(sent)), c.SendReliable([]byte(sent))); err != nil {
					t.Error(err)
					return
				}
				for echoes := map[bool]bool{}; len(echoes) < 2; { // that of either channel comes first
					select {
					case <-lost:
						if err := c.Send([]byte(sent)); err != nil {
							t.Error(err)
							return
						}
						continue
					case text := <-came:
						text, home, unreliable := strings.Cut(text, " by ")
						if unreliable && text != sent {
							continue // it was taken for lost
						}
						if echoes[unreliable] = true; text != sent {
							t.Errorf("%q came back, want %q", text, sent)
						}
						if unreliable && n > 0 && home != homes[i] {
							t.Errorf("client %d plays with shards %s and %s", i, homes[i], home)
						}
						if unreliable {
							homes[i] = home
						}
					}
				}
				joined()
			}
		})
	}
	playing.Wait()
	for range clients {
		<-left
	}
	busy := map[string]bool{}
	for _, home := range homes {
		busy[home] = true
	}
	if len(busy) != shards {
		t.Errorf("%d of %d shards had something to do", len(busy), shards)
	}
	if s := l.Stats(); s.Conns != 0 || s.Open != 0 || s.DatagramsReceived < clients*rounds || s.Forwarded != 0 || s.RTTs.Sum == 0 {
		t.Errorf("%+v", s)
	}
}

// texts is a handler that passes on payloads and messages.
type texts chan string

func (texts) Opened(*transport.Conn)                              {}
func (texts) Closed(*transport.Conn, error)                       {}
func (x texts) Datagram(_ *transport.Conn, b []byte, _ time.Time) { x <- string(b) }
func (x texts) Message(_ *transport.Conn, b []byte, _ time.Time)  { x <- string(b) }
func (texts) Tick(time.Time)                                      {}

// TestShardsOfOneLimit connects more clients to several shards at once than the limit permits.
func TestShardsOfOneLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const shards, places, clients = 4, 8, 48
		rs, handlers := recorders(t, shards)
		network := newNetwork(t, good)
		l := listen(t, serverAddr, transport.Config{
			Network: network, Shards: shards, MaxConns: places, MaxPending: clients, Handshakes: 1000,
		}, handlers...)
		conns, refused := make(chan *transport.Conn, clients), make(chan error, clients)
		var dialing sync.WaitGroup
		for range clients {
			dialing.Go(func() {
				c, err := transport.Dial(t.Context(), l.Addr().String(), transport.Config{Network: network}, &recorder{t: t})
				if err != nil {
					refused <- err
					return
				}
				conns <- c
			})
		}
		dialing.Wait()
		time.Sleep(time.Second) // until the listener has received the first datagrams of all
		close(conns)
		close(refused)
		if len(conns) != places || len(refused) != clients-places {
			t.Errorf("%d clients got one of %d places, %d none", len(conns), places, len(refused))
		}
		for err := range refused {
			if !errors.Is(err, transport.ErrServerFull) {
				t.Error(err)
			}
		}
		opened := 0
		for _, r := range rs {
			o, _, _, _ := r.snapshot()
			opened += len(o)
		}
		if opened != places {
			t.Errorf("%d connections were opened", opened)
		}
		for c := range conns {
			_ = c.Close()
		}
	})
}

// broken is a network whose packet connections can be read until it says so.
type broken struct {
	*simnet.Network
	pcs []transport.PacketConn
}

func (b *broken) ListenShards(addr string, n int) ([]transport.PacketConn, error) {
	pcs, err := b.Network.ListenShards(addr, n)
	b.pcs = pcs
	return pcs, err
}

// TestOneShardBreaks: with one of them all end.
func TestOneShardBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &broken{Network: newNetwork(t, good)}
		l, err := transport.Listen(serverAddr, transport.Config{Network: n, Shards: 3})
		if err != nil {
			t.Fatal(err)
		}
		rs, handlers := recorders(t, 3)
		served := make(chan error)
		go func() { served <- l.Serve(context.Background(), handlers...) }()
		for range 20 {
			dial(t, l.Addr(), transport.Config{Network: n.Network}, &recorder{t: t})
		}
		time.Sleep(time.Second)
		_ = n.pcs[1].Close()
		if err := <-served; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Serve: %v", err)
		}
		_ = l.Close()
		for i, r := range rs {
			opened, closed, _, _ := r.snapshot()
			if len(opened) == 0 || len(opened) != len(closed) {
				t.Errorf("shard %d: %d opened, %d closed", i, len(opened), len(closed))
			}
		}
		if s := l.Stats(); s.Conns != 0 || s.Open != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// plain is a network that spreads nothing.
type plain struct{ network transport.Network }

func (p plain) ListenPacket(addr string) (transport.PacketConn, error) {
	return p.network.ListenPacket(addr)
}

func TestShardsOfANetworkWithout(t *testing.T) {
	n := newNetwork(t, good)
	var log bytes.Buffer
	cfg := transport.Config{Network: plain{n}, Shards: 3, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	l, err := transport.Listen(serverAddr, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if l.Shards() != 1 || !strings.Contains(log.String(), "wanted=3") {
		t.Errorf("%d shards, log %q", l.Shards(), &log)
	}
	_, handlers := recorders(t, 3)
	if err := l.Serve(t.Context(), handlers...); err == nil || !strings.Contains(err.Error(), "got 3 handlers") {
		t.Errorf("three handlers for one shard: %v", err)
	}
	for _, shards := range []int{-1, transport.MaxShards() + 1} {
		cfg.Shards = shards
		if _, err := transport.Listen("127.0.0.1:7001", cfg); err == nil || !strings.Contains(err.Error(), "Config.Shards") {
			t.Errorf("%d shards: %v", shards, err)
		}
	}
}
