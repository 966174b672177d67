package transport_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// refusing is a network whose packet connections refuse every so many datagrams with an error of
// the system.
type refusing struct {
	*simnet.Network
	batches bool
	errno   syscall.Errno
	every   atomic.Uint64 // 0: none is refused
	written atomic.Uint64 // while some are refused
	refused atomic.Uint64
	batched atomic.Uint64 // of these, in a batch
}

func (n *refusing) ListenPacket(addr string) (transport.PacketConn, error) {
	pc, err := n.Network.ListenPacket(addr)
	if err != nil {
		return nil, err
	}
	if n.batches {
		return refusingBatches{refusingConn{pc, n}}, nil
	}
	return refusingConn{pc, n}, nil
}

// ListenShards keeps the network's own from being used.
func (n *refusing) ListenShards(addr string, _ int) ([]transport.PacketConn, error) {
	pc, err := n.ListenPacket(addr)
	return []transport.PacketConn{pc}, err
}

type refusingConn struct {
	transport.PacketConn
	network *refusing
}

// write sends a datagram or returns the bare error.
func (c refusingConn) write(b []byte, to netip.AddrPort) error {
	n := c.network
	if every := n.every.Load(); every > 0 && n.written.Add(1)%every == 0 {
		n.refused.Add(1)
		return n.errno
	}
	_, err := c.PacketConn.WriteTo(b, to)
	return err
}

func (c refusingConn) WriteTo(b []byte, to netip.AddrPort) (int, error) {
	if err := c.write(b, to); err != nil {
		return 0, &net.OpError{Op: "write", Net: "udp", Err: os.NewSyscallError("sendto", err)}
	}
	return len(b), nil
}

type refusingBatches struct{ refusingConn }

func (c refusingBatches) ReadBatch(into []transport.Datagram) (int, error) {
	n, from, err := c.ReadFrom(into[0].Buf)
	if err != nil {
		return 0, err
	}
	into[0].N, into[0].Addr = n, from
	return 1, nil
}

func (c refusingBatches) WriteBatch(out []transport.Datagram) (int, error) {
	for i := range out {
		if err := c.write(out[i].Bytes(), out[i].Addr); err != nil {
			c.network.batched.Add(1)
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
					synctest.Test(t, func(t *testing.T) { refuseDatagrams(t, errno, batches, end == "server") })
				})
			}
		}
	}
}

func refuseDatagrams(t *testing.T, errno syscall.Errno, batches, ofServer bool) {
	t.Helper()
	var logged bytes.Buffer
	n := newNetwork(t, simnet.Config{Delay: 10 * time.Millisecond})
	bad := &refusing{Network: n, batches: batches, errno: errno}
	cfg, other := transport.Config{Network: bad, Logger: slog.New(slog.NewTextHandler(&logged, nil))}, transport.Config{Network: n}
	w := &world{network: n, server: &recorder{t: t}, client: &recorder{t: t}}
	if !ofServer {
		cfg, other = other, cfg
	}
	w.listener = listen(t, serverAddr, cfg, w.server)
	w.conn = dial(t, w.listener.Addr(), other, w.client)
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
		if records := logged.String()[had:]; strings.Count(records, "\n") != 1 ||
			!strings.Contains(records, `level=WARN msg="datagrams not sent" local=127.0.0.1:`) || !strings.Contains(records, errno.Error()) {
			t.Errorf("the log has %q", records)
		}
		had = logged.Len()
		w.play(t, s, 8*time.Second)
		if records := logged.String()[had:]; strings.Count(records, "\n") != 1 ||
			!strings.Contains(records, `level=INFO msg="datagrams sent again" local=127.0.0.1:`) || !strings.Contains(records, fmt.Sprintf("failed=%d lasted=", refused)) {
			t.Errorf("after %d datagrams the log has %q", refused, records)
		}
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
}
