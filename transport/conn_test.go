package transport_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/internal/reliable"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// bad returns a link with packet loss, duplicates and reordering.
func bad(seed uint64) simnet.Config {
	return simnet.Config{
		Delay: 30 * time.Millisecond, Jitter: 20 * time.Millisecond,
		Loss: 0.3, Duplicate: 0.1, Seed: seed,
	}
}

var good = simnet.Config{Delay: 20 * time.Millisecond}

func TestOpenedBeforeDialReturns(t *testing.T) {
	inWorld(t, good, func(t *testing.T, w *world) {
		opened, _, _, _ := w.client.snapshot()
		if len(opened) != 1 || opened[0] != w.conn {
			t.Errorf("opened: %v", opened)
		}
		if rtt := w.conn.RTT(); rtt != 2*good.Delay {
			t.Errorf("round trip %v, want %v", rtt, 2*good.Delay)
		}
	})
}

func TestDatagramsBothWays(t *testing.T) {
	inWorld(t, bad(1), func(t *testing.T, w *world) {
		s := w.serverConn(t)
		const count = 1000
		for i := range count {
			for _, c := range []*transport.Conn{w.conn, s} {
				if err := c.Send(fmt.Appendf(nil, "%d", i)); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second / 60)
		}
		time.Sleep(time.Second)
		for _, r := range []*recorder{w.client, w.server} {
			_, _, datagrams, _ := r.snapshot()
			checkDatagrams(t, datagrams, count)
		}
		for _, c := range []*transport.Conn{w.conn, s} {
			stats := c.Stats()
			// 30 % of about 1,000; the last 64 do not count yet.
			if stats.Lost < 200 || stats.Lost > 400 {
				t.Errorf("%d lost", stats.Lost)
			}
			if stats.Dropped.Duplicate == 0 || stats.Dropped.Unexpected > 10 || // answers to repeated hellos
				stats.Dropped.Total() != stats.Dropped.Duplicate+stats.Dropped.Late+stats.Dropped.Unexpected {
				t.Errorf("dropped: %+v", stats.Dropped)
			}
		}
	})
}

// checkDatagrams verifies that about 70 % of count datagrams arrived, without duplicates and out of
// order.
func checkDatagrams(t *testing.T, datagrams []string, count int) {
	t.Helper()
	seen := make(map[string]bool)
	last, swapped := -1, false
	for _, d := range datagrams {
		if seen[d] {
			t.Errorf("datagram %s came twice", d)
		}
		seen[d] = true
		var n int
		if _, err := fmt.Sscan(d, &n); err != nil || n >= count {
			t.Fatalf("datagram %q was not sent", d)
		}
		swapped = swapped || n < last
		last = n
	}
	if len(seen) < count*6/10 || len(seen) > count*8/10 {
		t.Errorf("%d of %d datagrams came", len(seen), count)
	}
	if !swapped {
		t.Error("the link did not reorder")
	}
}

// message returns the n-th test message.
func message(n int) []byte {
	rng := rand.New(rand.NewPCG(uint64(n), 1))
	size := 1 + rng.IntN(200)
	if n%20 == 0 {
		size = maxMessage - n
	}
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func TestMessagesBothWays(t *testing.T) {
	inWorld(t, bad(2), func(t *testing.T, w *world) {
		ends := []*transport.Conn{w.conn, w.serverConn(t)}
		const count = 200
		var sent [2]int
		for sent[0] < count || sent[1] < count {
			for i, c := range ends {
				if sent[i] == count {
					continue
				}
				err := c.SendReliable(message(sent[i]))
				if err == nil {
					sent[i]++
				} else if !errors.Is(err, transport.ErrBacklog) {
					t.Fatal(err)
				}
			}
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		for _, r := range []*recorder{w.client, w.server} {
			_, _, _, messages := r.snapshot()
			if len(messages) != count {
				t.Fatalf("%d of %d messages came", len(messages), count)
			}
			for i, b := range messages {
				if !bytes.Equal(b, message(i)) {
					t.Fatalf("message %d is another", i)
				}
			}
		}
	})
}

func TestSendLimits(t *testing.T) {
	inWorld(t, good, func(t *testing.T, w *world) {
		for name, c := range map[string]struct {
			err  error
			want error
		}{
			"long datagram": {w.conn.Send(make([]byte, transport.MaxPayload+1)), transport.ErrTooLarge},
			"long message":  {w.conn.SendReliable(make([]byte, maxMessage+1)), transport.ErrTooLarge},
			"empty message": {w.conn.SendReliable(nil), reliable.ErrEmpty},
			"full datagram": {w.conn.Send(make([]byte, transport.MaxPayload)), nil},
			"full message":  {w.conn.SendReliable(make([]byte, maxMessage)), nil},
			"no datagram":   {w.conn.Send(nil), nil},
		} {
			if !errors.Is(c.err, c.want) {
				t.Errorf("%s: %v, want %v", name, c.err, c.want)
			}
		}
		var err error
		for range 1000 {
			if err = w.conn.SendReliable([]byte("x")); err != nil {
				break
			}
		}
		if !errors.Is(err, transport.ErrBacklog) {
			t.Errorf("after 1,000 messages at once: %v, want %v", err, transport.ErrBacklog)
		}
		_ = w.conn.Close()
		for _, err := range []error{w.conn.Send(nil), w.conn.SendReliable([]byte("x"))} {
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
		}
	})
}

func TestSendFromManyGoroutinesAndHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, good)
		cfg := transport.Config{Network: network}
		echo := &recorder{t: t}
		echo.onDatagram = func(c *transport.Conn, b []byte) { _ = c.Send(b) }
		echo.onMessage = func(c *transport.Conn, b []byte) { _ = c.SendReliable(b) }
		l := listen(t, serverAddr, cfg, echo)
		r := &recorder{t: t}
		conn := dial(t, l.Addr(), cfg, r)
		for g := range 8 {
			go func() {
				for i := range 50 {
					_ = conn.Send(fmt.Appendf(nil, "%d/%d", g, i))
					if err := conn.SendReliable([]byte("m")); err != nil && !errors.Is(err, transport.ErrBacklog) {
						t.Error(err)
					}
					time.Sleep(10 * time.Millisecond)
				}
			}()
		}
		time.Sleep(5 * time.Second)
		_, _, datagrams, messages := r.snapshot()
		if len(datagrams) != 400 || len(messages) != 400 {
			t.Errorf("%d datagrams and %d messages came back, want 400", len(datagrams), len(messages))
		}
	})
}

// TestUnacked verifies that reliable segments count until the peer acknowledges them.
func TestUnacked(t *testing.T) {
	inWorld(t, good, func(t *testing.T, w *world) {
		if n := w.conn.Unacked(); n != 0 {
			t.Errorf("%d segments at first", n)
		}
		for range 3 {
			if err := w.conn.SendReliable(make([]byte, 2000)); err != nil {
				t.Fatal(err)
			}
		}
		if n := w.conn.Unacked(); n != 6 {
			t.Errorf("%d segments of three messages", n)
		}
		time.Sleep(2 * time.Second)
		if n := w.conn.Unacked(); n != 0 {
			t.Errorf("%d segments at last", n)
		}
	})
}
