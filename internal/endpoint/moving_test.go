package endpoint_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// play sends from both ends at 60 Hz for a while, and returns the number of datagrams that the
// server received.
func (w *world) play(t *testing.T, s *endpoint.Conn, d time.Duration) int {
	t.Helper()
	_, _, before, _ := w.server.snapshot()
	for i := range int(d / (time.Second / 60)) {
		if err := errors.Join(w.conn.Send(fmt.Append(nil, i)), s.Send([]byte("ack"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second / 60)
	}
	_, _, after, _ := w.server.snapshot()
	return len(after) - len(before)
}

// TestRebind changes the client's own socket.
func TestRebind(t *testing.T) {
	for seed := range uint64(5) {
		inWorld(t, bad(seed), func(t *testing.T, w *world) {
			s := w.serverConn(t)
			w.play(t, s, time.Second)
			before := w.conn.LocalAddr()
			if err := errors.Join(w.conn.Rebind(), w.conn.SendReliable([]byte("still here"))); err != nil {
				t.Fatal(err)
			}
			w.play(t, s, 3*time.Second)
			if got, want := s.RemoteAddr(), w.conn.LocalAddr(); got != want || got == before {
				t.Errorf("the server sends to %v, want %v", got, want)
			}
			if _, _, _, messages := w.server.snapshot(); len(messages) != 1 || string(messages[0]) != "still here" {
				t.Errorf("messages %q", messages)
			}
			if err := s.Rebind(); err == nil {
				t.Error("the server's end has another socket")
			}
			_ = w.conn.Close()
			if err := w.conn.Rebind(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
		})
	}
}

// TestFoundByPayloads checks that a server validates the new address of a client that sends
// payloads at once, not only when another timer of the session is due: after an interruption of the
// path, a round trip and a half, with the delays of a challenge and of ticks.
func TestFoundByPayloads(t *testing.T) {
	link := simnet.Config{Delay: 20 * time.Millisecond}
	const limit = 3*20*time.Millisecond + 120*time.Millisecond
	inWorld(t, link, func(t *testing.T, w *world) {
		s := w.serverConn(t)
		w.play(t, s, time.Second)
		for round := range 5 {
			w.cut(t)
			time.Sleep(8*time.Second + time.Duration(round)*170*time.Millisecond)
			w.set(t, link)
			outside, err := w.network.Rebind(w.conn.LocalAddr())
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			for s.RemoteAddr() != outside && time.Since(start) < 2*time.Second {
				if err := w.conn.Send([]byte("payload")); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second / 60)
			}
			if took := time.Since(start); took > limit {
				t.Errorf("round %d: found after %v, want at most %v", round, took, limit)
			}
			w.play(t, s, 15*time.Second)
		}
	})
}

// TestWake ticks a handler when it asks for it: at the earliest of the times, once. Between ticks
// an idle connection sleeps: each second there are a heartbeat of its own, one of the peer, and the
// moments at which it has been silent for too long.
func TestWake(t *testing.T) {
	var reads atomic.Int64
	inWorld(t, simnet.Config{Delay: 10 * time.Millisecond}, func(t *testing.T, w *world) {
		time.Sleep(5 * time.Second)
		before := reads.Load()
		time.Sleep(10 * time.Second)
		if n := reads.Load() - before; n == 0 || n > 60 {
			t.Errorf("%d reads in 10 s", n)
		}
		if at := w.client.ticked(); len(at) != 0 {
			t.Fatalf("%d ticks that nobody asked for", len(at))
		}
		start := time.Now()
		for _, ms := range []time.Duration{500, 200, 300} {
			w.conn.Wake(start.Add(ms * time.Millisecond))
		}
		time.Sleep(time.Second)
		w.conn.Wake(time.Now().Add(-time.Hour))
		synctest.Wait()
		want := []time.Time{start.Add(200 * time.Millisecond), start.Add(time.Second)}
		if at := w.client.ticked(); !slices.EqualFunc(at, want, time.Time.Equal) {
			t.Errorf("ticked at %v, want %v", at, want)
		}
	}, func(w *world) {
		w.cfg.Tick = endpoint.OnWake
		w.cfg.Network = hooked{w.network, func(pc transport.PacketConn) transport.PacketConn {
			return &hookedConn{PacketConn: pc, read: func() { reads.Add(1) }}
		}}
	})
}

// TestTicks: without being asked the handler is ticked in a rhythm.
func TestTicks(t *testing.T) {
	inWorld(t, simnet.Config{}, func(t *testing.T, w *world) {
		time.Sleep(3*time.Second + time.Millisecond)
		if n := len(w.client.ticked()); n != 100 {
			t.Errorf("%d ticks in 3 s, want 100", n)
		}
	}, func(w *world) { w.cfg.Tick = 30 * time.Millisecond })
}

// TestSocketFailover: a connection whose socket takes nothing any more goes on from another one, by
// itself, and from that one as long as it does.
func TestSocketFailover(t *testing.T) {
	var opened, cut atomic.Int64
	inWorld(t, simnet.Config{Delay: 10 * time.Millisecond}, func(t *testing.T, w *world) {
		time.Sleep(time.Second)
		before := w.conn.LocalAddr()
		cut.Store(3)
		time.Sleep(6 * time.Second)
		if n := opened.Load(); n != 4 || w.conn.LocalAddr() == before {
			t.Fatalf("%d sockets were opened, want 4", n)
		}
		if err := w.conn.Send([]byte("here")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		_, _, datagrams, _ := w.server.snapshot()
		if to := w.serverConn(t).RemoteAddr(); !slices.Equal(datagrams, []string{"here"}) || to != w.conn.LocalAddr() {
			t.Errorf("the server got %q, and sends to %v", datagrams, to)
		}
		if s := w.conn.Stats(); s.SendFailed < 3 {
			t.Errorf("%+v", s)
		}
	}, func(w *world) {
		w.cfg.Tick = endpoint.OnWake
		w.cfg.Network = hooked{w.network, func(pc transport.PacketConn) transport.PacketConn {
			n := opened.Add(1)
			return &hookedConn{PacketConn: pc, write: func() error {
				if n <= cut.Load() {
					return syscall.ENETUNREACH
				}
				return nil
			}}
		}}
	})
}

// refusals are errors of the system for every so many datagrams.
type refusals struct {
	errno   syscall.Errno
	every   atomic.Uint64 // 0: none is refused
	written atomic.Uint64 // while some are refused
	refused atomic.Uint64
	batched atomic.Uint64 // of these, in a batch
}

type refusing struct {
	transport.PacketConn
	*refusals
}

// write sends a datagram or returns the bare error.
func (c refusing) write(b []byte, to netip.AddrPort) error {
	if every := c.every.Load(); every > 0 && c.written.Add(1)%every == 0 {
		c.refused.Add(1)
		return c.errno
	}
	_, err := c.PacketConn.WriteTo(b, to)
	return err
}

func (c refusing) WriteTo(b []byte, to netip.AddrPort) (int, error) {
	if err := c.write(b, to); err != nil {
		return 0, &net.OpError{Op: "write", Net: "udp", Err: os.NewSyscallError("sendto", err)}
	}
	return len(b), nil
}

type refusingBatches struct{ refusing }

func (c refusingBatches) ReadBatch(into []transport.Datagram) (n int, err error) {
	into[0].N, into[0].Addr, err = c.ReadFrom(into[0].Buf)
	if err != nil {
		return 0, err
	}
	return 1, nil
}

func (c refusingBatches) WriteBatch(out []transport.Datagram) (int, error) {
	for i := range out {
		if err := c.write(out[i].Bytes(), out[i].Addr); err != nil {
			c.batched.Add(1)
			return i, os.NewSyscallError("sendmmsg", err)
		}
	}
	return len(out), nil
}

// TestSendErrors fails all writes of one end for 3 s, then every second one for 3 s. Each error is
// counted, the log contains two records per period, and the session continues.
func TestSendErrors(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ENOBUFS, syscall.EPERM, syscall.EMSGSIZE, syscall.ENETUNREACH} {
		for _, batches := range []bool{false, true} {
			for _, end := range []string{"server", "client"} {
				t.Run(fmt.Sprintf("%v of the %s, batches %v", errno, end, batches), func(t *testing.T) {
					refuseDatagrams(t, errno, batches, end == "server")
				})
			}
		}
	}
}

func refuseDatagrams(t *testing.T, errno syscall.Errno, batches, ofServer bool) {
	t.Helper()
	var logged bytes.Buffer
	bad := &refusals{errno: errno}
	inWorld(t, simnet.Config{Delay: 10 * time.Millisecond}, func(t *testing.T, w *world) {
		s := w.serverConn(t)
		counts := func() (conn, all uint64) {
			if ofServer {
				return s.Stats().SendFailed, w.listener.Stats().SendFailed
			}
			failed := w.conn.Stats().SendFailed
			return failed, failed
		}
		w.play(t, s, time.Second)
		for round, every := range []uint64{1, 2} {
			before, had := bad.refused.Load(), logged.Len()
			bad.every.Store(every)
			w.play(t, s, 2*time.Second)
			if err := errors.Join(w.conn.SendReliable([]byte("up")), s.SendReliable([]byte("down"))); err != nil {
				t.Fatal(err)
			}
			w.play(t, s, time.Second)
			bad.every.Store(0)
			refused := bad.refused.Load() - before
			if refused < 50 {
				t.Errorf("only %d datagrams were refused", refused)
			}
			checkRecord(t, logged.String()[had:], `level=WARN msg="datagrams not sent" local=127.0.0.1:`, errno.Error())
			had = logged.Len()
			w.play(t, s, 8*time.Second)
			checkRecord(t, logged.String()[had:], `level=INFO msg="datagrams sent again" local=127.0.0.1:`,
				fmt.Sprintf("failed=%d lasted=", refused))
			if conn, all := counts(); conn != bad.refused.Load() || all != conn {
				t.Errorf("%d and %d failures are counted, want %d", conn, all, bad.refused.Load())
			}
			if (bad.batched.Load() > 0) != batches {
				t.Errorf("%d of %d datagrams were refused in a batch", bad.batched.Load(), bad.refused.Load())
			}
			if got := w.play(t, s, time.Second); got < 55 {
				t.Errorf("%d of 60 datagrams came afterwards", got)
			}
			_, ended, _, up := w.server.snapshot()
			_, lost, _, down := w.client.snapshot()
			if len(up) != round+1 || len(down) != round+1 || len(ended)+len(lost) != 0 {
				t.Errorf("messages %q and %q, ended %v, %v", up, down, ended, lost)
			}
		}
	}, func(w *world) {
		cfg := &w.cfg
		if ofServer {
			cfg = &w.serverCfg
		}
		cfg.Logger = slog.New(slog.NewTextHandler(&logged, nil))
		cfg.Network = hooked{w.network, func(pc transport.PacketConn) transport.PacketConn {
			if batches {
				return refusingBatches{refusing{pc, bad}}
			}
			return refusing{pc, bad}
		}}
	})
}

// checkRecord verifies that the log has one record with these texts.
func checkRecord(t *testing.T, log string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Count(log, "\n") != 1 || !strings.Contains(log, text) {
			t.Errorf("the log has %q, want %q", log, text)
		}
	}
}
