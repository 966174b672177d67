package endpoint_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestShards runs many clients over sockets of the operating system: each stays on one shard, each
// shard serves some of them, and datagrams are echoed. One of four shards gets none of 64 clients
// with a probability of 4e-8.
func TestShards(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("one socket an address")
	}
	const shards, clients, rounds = 4, 64, 20
	left := make(chan int, clients)
	all, handlers := recorders(t, shards)
	for i, r := range all {
		r.onClosed = func(*endpoint.Conn, error) { left <- 1 }
		r.onDatagram = func(c *endpoint.Conn, b []byte) { _ = c.Send(fmt.Appendf(nil, "%s by %d", b, i)) }
		r.onMessage = func(c *endpoint.Conn, b []byte) { _ = c.SendReliable(b) }
	}
	cfg := endpoint.Config{Shards: shards, Handshakes: 1000, Timeout: patience}
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
			came := make(chan string, 16)
			pass := func(_ *endpoint.Conn, b []byte) { came <- string(b) }
			c, err := endpoint.Dial(t.Context(), l.Addr().String(), cfg, &recorder{t: t, onDatagram: pass, onMessage: pass})
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
	slices.Sort(homes)
	if busy := len(slices.Compact(homes)); busy != shards {
		t.Errorf("%d of %d shards had something to do", busy, shards)
	}
	if s := l.Stats(); s.Conns != 0 || s.Open != 0 || s.DatagramsReceived < clients*rounds || s.Forwarded != 0 || s.RTTs.Sum == 0 {
		t.Errorf("%+v", s)
	}
}

// TestShardsOfOneLimit connects more clients to several shards at once than the limit permits.
func TestShardsOfOneLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const shards, places, clients = 4, 8, 48
		rs, handlers := recorders(t, shards)
		network := newNetwork(t, good)
		l := listen(t, serverAddr, endpoint.Config{
			Network: network, Shards: shards, MaxConns: places, MaxPending: clients, Handshakes: 1000,
		}, handlers...)
		var refused atomic.Int64
		var dialing sync.WaitGroup
		for range clients {
			dialing.Go(func() {
				c, err := endpoint.Dial(t.Context(), l.Addr().String(), endpoint.Config{Network: network}, &recorder{t: t})
				switch {
				case errors.Is(err, transport.ErrServerFull):
					refused.Add(1)
				case err != nil:
					t.Error(err)
				default:
					t.Cleanup(func() { _ = c.Close() })
				}
			})
		}
		dialing.Wait()
		time.Sleep(time.Second) // until the listener has received the first datagrams of all
		opened := 0
		for _, r := range rs {
			o, _, _, _ := r.snapshot()
			opened += len(o)
		}
		if opened != places || refused.Load() != clients-places {
			t.Errorf("%d of %d places are taken, %d clients got none", opened, places, refused.Load())
		}
	})
}

// TestOneShardBreaks: with one of them all end.
func TestOneShardBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, good)
		pcs, err := n.ListenShards(serverAddr, 3)
		if err != nil {
			t.Fatal(err)
		}
		l, err := endpoint.Listen(serverAddr, endpoint.Config{Network: opened{n, pcs}, Shards: 3})
		if err != nil {
			t.Fatal(err)
		}
		rs, handlers := recorders(t, 3)
		served := make(chan error)
		go func() { served <- l.Serve(context.Background(), handlers...) }()
		for range 20 {
			dial(t, l.Addr(), endpoint.Config{Network: n}, &recorder{t: t})
		}
		time.Sleep(time.Second)
		_ = pcs[1].Close()
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

// opened is a network whose packet connections of a listener are open already.
type opened struct {
	*simnet.Network
	pcs []transport.PacketConn
}

func (o opened) ListenShards(string, int) ([]transport.PacketConn, error) { return o.pcs, nil }

func TestShardsOfANetworkWithout(t *testing.T) {
	n := hooked{newNetwork(t, good), func(pc transport.PacketConn) transport.PacketConn { return pc }}
	var log bytes.Buffer
	cfg := endpoint.Config{Network: n, Shards: 3, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	l, err := endpoint.Listen(serverAddr, cfg)
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
}

// rebind changes the client's address, as a NAT does.
func (w *world) rebind(t *testing.T) netip.AddrPort {
	t.Helper()
	outside, err := w.network.Rebind(w.conn.LocalAddr())
	if err != nil {
		t.Fatal(err)
	}
	return outside
}

// TestMovesBetweenShards moves a client about, over a link that loses, duplicates and reorders: at
// a listener of one shard, and of four, so that its datagrams come to other shards than its own.
func TestMovesBetweenShards(t *testing.T) {
	for seed := range uint64(15) {
		shards := 1 + 3*min(int(seed%3), 1)
		inWorld(t, bad(seed), func(t *testing.T, w *world) {
			s := w.serverConn(t)
			const moves = 8
			for range moves {
				w.play(t, s, time.Second)
				outside := w.rebind(t)
				if err := w.conn.SendReliable([]byte("moving")); err != nil {
					t.Fatal(err)
				}
				for tries := 0; s.RemoteAddr() != outside; tries++ { // losses can delay a round of challenges
					if tries == 20 {
						t.Fatalf("the server sends to %v, want %v", s.RemoteAddr(), outside)
					}
					w.play(t, s, 500*time.Millisecond)
				}
			}
			if n := w.play(t, s, time.Second); n < 20 {
				t.Errorf("%d of 60 datagrams came in the end", n)
			}
			time.Sleep(5 * time.Second)
			st := w.listener.Stats()
			if st.Open != 1 || st.Conns != 1 || (st.Forwarded > 100) != (shards > 1) || st.Dropped.Overrun != 0 ||
				st.PathMigrations != moves {
				t.Errorf("%+v", st)
			}
			if n := s.Stats().PathMigrations; n != moves {
				t.Errorf("%d moves, want %d", n, moves)
			}
			if _, _, _, messages := w.server.snapshot(); len(messages) != moves {
				t.Errorf("%d of %d messages came", len(messages), moves)
			}
			for _, r := range w.shards {
				if _, _, datagrams, _ := r.snapshot(); r != w.server && len(datagrams) > 0 {
					t.Error("another shard's handler got datagrams")
				}
			}
		}, func(w *world) { w.serverCfg.Shards = shards })
	}
}

// TestForwardedAtOnce: a shard that has nothing else to do does not wait for its tick. The client,
// which hears the listener, does not name its session any more: the shard to which its datagrams
// come knows its address.
func TestForwardedAtOnce(t *testing.T) {
	const tick = 500 * time.Millisecond
	inWorld(t, good, func(t *testing.T, w *world) {
		s := w.serverConn(t)
		came := make(chan time.Time, 1)
		w.server.onDatagram = func(_ *endpoint.Conn, b []byte) {
			if string(b) == "move" {
				came <- time.Now()
			}
		}
		for moved, tries := 0, 0; moved < 5; tries++ {
			if tries == 50 {
				t.Fatal("the client does not move")
			}
			w.rebind(t)
			w.play(t, s, 15*time.Second) // it names its session for 12 s after a challenge
			before := w.listener.Stats()
			time.Sleep(tick / 3) // anywhere between two ticks
			sent, bytes := time.Now(), w.conn.Stats().BytesSent
			if err := w.conn.Send([]byte("move")); err != nil {
				t.Fatal(err)
			}
			const report = wire.ShortSize - wire.DataSize + wire.ReportSize // which the datagram may contain
			if n := w.conn.Stats().BytesSent - bytes - uint64(endpoint.HeaderSize+4+transport.AES128GCM.Overhead()); n != 0 && n != report {
				t.Errorf("a datagram of %d bytes: the client names its session", n)
			}
			if flight := (<-came).Sub(sent); flight < 0 || flight > 2*good.Delay+time.Millisecond {
				t.Errorf("the datagram took %v, and the link %v", flight, good.Delay)
			}
			after := w.listener.Stats()
			if after.Forwarded > before.Forwarded {
				moved++
			}
			if after.Dropped != before.Dropped {
				t.Errorf("%+v, then %+v", before.Dropped, after.Dropped)
			}
		}
	}, func(w *world) { w.serverCfg.Tick, w.serverCfg.Shards = tick, 4 })
}

// TestHelloMovesBetweenShards: a hello is known by another shard than the one that answered it
// first. The addresses of clients change behind their back with every second of their first hellos.
func TestHelloMovesBetweenShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, good)
		rs, handlers := recorders(t, 4)
		l := listen(t, serverAddr, endpoint.Config{Network: n, Shards: 4}, handlers...)
		for range 20 {
			hellos := 0
			moving := hooked{n, func(pc transport.PacketConn) transport.PacketConn {
				return &hookedConn{PacketConn: pc, wrote: func(b []byte) {
					if isHello := b[0]>>6 == 2; isHello && hellos < 4 {
						if hellos++; hellos%2 == 0 {
							_, _ = n.Rebind(pc.LocalAddr())
						}
					}
				}}
			}}
			dial(t, l.Addr(), endpoint.Config{Network: moving}, &recorder{t: t})
		}
		time.Sleep(3 * time.Second)
		opened := 0
		for _, r := range rs {
			o, closed, _, _ := r.snapshot()
			opened += len(o)
			if len(closed) > 0 {
				t.Errorf("%v", closed[0].err)
			}
		}
		if s := l.Stats(); opened != 20 || s.Open != 20 || s.Conns != 20 || s.Forwarded == 0 {
			t.Errorf("%d opened, %+v", opened, s)
		}
	})
}

// TestLoginsAtShards connects the same client id repeatedly, from changing addresses, while its
// earlier connections are open. On any shard, Closed of a connection precedes Opened of the next.
func TestLoginsAtShards(t *testing.T) {
	for seed := range uint64(3) {
		synctest.Test(t, func(t *testing.T) {
			const shards, count = 4, 40
			n := newNetwork(t, simnet.Config{Delay: 20 * time.Millisecond, Jitter: 10 * time.Millisecond, Loss: 0.1, Seed: seed})
			var mu sync.Mutex
			var current *endpoint.Conn
			var total, left, replaced int
			rs, handlers := recorders(t, shards)
			for _, r := range rs {
				r.onOpened = func(c *endpoint.Conn) {
					mu.Lock()
					defer mu.Unlock()
					if current != nil {
						t.Error("a client's connection is opened while its last one is")
					}
					current = c
					total++
				}
				r.onClosed = func(c *endpoint.Conn, err error) {
					mu.Lock()
					defer mu.Unlock()
					if current != c {
						t.Error("another connection of a client is closed than was opened last")
					}
					current = nil
					left++
					if errors.Is(err, transport.ErrReplaced) {
						replaced++
					}
				}
			}
			l := listen(t, serverAddr, endpoint.Config{Network: n, Shards: shards}, handlers...)
			var conns sync.WaitGroup
			for i := range count {
				conns.Go(func() {
					cfg := endpoint.Config{Network: n, Token: issue(t, token.Development(), nil)}
					if c, err := endpoint.Dial(t.Context(), serverAddr, cfg, &recorder{t: t}); err == nil {
						if i%5 == 0 {
							_ = c.Close() // while others come
						} else {
							t.Cleanup(func() { _ = c.Close() })
						}
					}
				})
				time.Sleep(time.Duration(i%4) * 50 * time.Millisecond)
			}
			conns.Wait()
			time.Sleep(12 * time.Second) // closes that were lost are found out
			mu.Lock()
			defer mu.Unlock()
			open := 0
			if current != nil {
				open = 1
			}
			if total < count/4 || left != total-open || replaced == 0 {
				t.Errorf("%d connections, %d ended, %d were replaced, %d are there", total, left, replaced, open)
			}
			if s := l.Stats(); s.Open != open || s.Conns != open {
				t.Errorf("%+v", s)
			}
		})
	}
}
