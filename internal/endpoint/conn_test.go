package endpoint_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/transport/reliable"
	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// spy is a tap that records all events.
type spy struct {
	mu  sync.Mutex
	all []transport.TapEvent
}

func (s *spy) record(c transport.TapEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Body = bytes.Clone(c.Body)
	s.all = append(s.all, c)
}

// take returns the recorded events of one direction and one channel.
func (s *spy) take(sent, reliable bool) (out []transport.TapEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.all {
		if c.Sent == sent && c.Reliable == reliable {
			out = append(out, c)
		}
	}
	return out
}

// TestBothWays sends datagrams and messages from both ends over a bad link. Each end's tap sees
// what it sends and what its handler receives, with the numbers and sizes on the wire.
func TestBothWays(t *testing.T) {
	const count, messages = 1000, 200
	var taps [2]spy
	inWorld(t, bad(1), func(t *testing.T, w *world) {
		conns := []*endpoint.Conn{w.conn, w.serverConn(t)}
		var sent [2]int
		for n := range count {
			for i, c := range conns {
				if err := c.Send(fmt.Append(nil, n)); err != nil {
					t.Fatal(err)
				}
				if sent[i] == messages {
					continue
				}
				if err := c.SendReliable(message(sent[i])); err == nil {
					sent[i]++
				} else if !errors.Is(err, transport.ErrBacklog) {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second / 60)
		}
		if err := w.conn.Send(make([]byte, 2000)); err == nil {
			t.Error("2000 bytes were sent")
		}
		time.Sleep(20 * time.Second)
		for i, r := range []*recorder{w.client, w.server} {
			_, _, datagrams, got := r.snapshot()
			checkDatagrams(t, datagrams, count)
			if len(got) != messages {
				t.Fatalf("%d of %d messages came", len(got), messages)
			}
			up, down := taps[1-i].take(true, true), taps[i].take(false, true)
			for n, b := range got {
				if want := message(n); !bytes.Equal(b, want) || !bytes.Equal(up[n].Body, want) || !bytes.Equal(down[n].Body, want) {
					t.Fatalf("message %d is another", n)
				}
			}
			checkTaps(t, taps[1-i].take(true, false), taps[i].take(false, false), datagrams)
			stats, all := conns[i].Stats(), float64(conns[1-i].Stats().DatagramsSent)
			if lost := float64(stats.Lost) / all; lost < 0.2 || lost > 0.4 {
				t.Errorf("%v of %v datagrams were lost", stats.Lost, all)
			}
			d := stats.Dropped // answers to repeated hellos are unexpected
			if d.Duplicate == 0 || d.Unexpected > 10 || d.Total() != d.Duplicate+d.Late+d.Unexpected {
				t.Errorf("dropped: %+v", d)
			}
		}
	}, func(w *world) {
		w.client.onOpened = func(c *endpoint.Conn) { c.SetTap(taps[0].record) }
		w.server.onOpened = func(c *endpoint.Conn) { c.SetTap(taps[1].record) }
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
		n, err := strconv.Atoi(d)
		if err != nil || n >= count {
			t.Fatalf("datagram %q was not sent", d)
		}
		swapped = swapped || n < last
		last = n
	}
	if len(seen) < count*6/10 || len(seen) > count*8/10 || !swapped {
		t.Errorf("%d of %d datagrams came; reordered: %v", len(seen), count, swapped)
	}
}

// checkTaps compares the datagrams that one end's tap saw sent, and the other one's received, with
// those of the handler.
func checkTaps(t *testing.T, sent, came []transport.TapEvent, datagrams []string) {
	t.Helper()
	known := map[uint64]transport.TapEvent{}
	for i, c := range sent {
		size := endpoint.HeaderSize + len(c.Body) + transport.AES128GCM.Overhead()
		if i > 0 && c.Number <= sent[i-1].Number || string(c.Body) != strconv.Itoa(i) || c.At.IsZero() ||
			c.Size != size && c.Size != size+9 && c.Size != size+7 {
			t.Fatalf("%+v after %+v", c, sent[max(i, 1)-1])
		}
		known[c.Number] = c
	}
	if len(came) != len(datagrams) {
		t.Fatalf("the tap saw %d datagrams of %d", len(came), len(datagrams))
	}
	for i, c := range came {
		want := known[c.Number]
		if !bytes.Equal(c.Body, want.Body) || c.Size != want.Size || string(c.Body) != datagrams[i] {
			t.Fatalf("%+v came of %+v, the handler got %q", c, want, datagrams[i])
		}
	}
}

// message returns the n-th test message.
func message(n int) []byte {
	rng := rand.New(rand.NewPCG(uint64(n), 1))
	size := 1 + rng.IntN(200)
	if n%20 == 0 {
		size = reliable.MaxMessage - n
	}
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func TestSendLimits(t *testing.T) {
	inWorld(t, good, func(t *testing.T, w *world) {
		c := w.conn
		if opened, _, _, _ := w.client.snapshot(); len(opened) != 1 || opened[0] != c || c.RTT() != 2*good.Delay {
			t.Errorf("opened before Dial returned: %v, round trip %v", opened, c.RTT())
		}
		for name, c := range map[string]struct {
			err  error
			want error
		}{
			"long datagram": {c.Send(make([]byte, transport.MaxPayload+1)), endpoint.ErrTooLarge},
			"long message":  {c.SendReliable(make([]byte, reliable.MaxMessage+1)), endpoint.ErrTooLarge},
			"empty message": {c.SendReliable(nil), reliable.ErrEmpty},
			"full datagram": {c.Send(make([]byte, transport.MaxPayload)), nil},
			"full message":  {c.SendReliable(make([]byte, reliable.MaxMessage)), nil},
			"no datagram":   {c.Send(nil), nil},
		} {
			if !errors.Is(c.err, c.want) {
				t.Errorf("%s: %v, want %v", name, c.err, c.want)
			}
		}
		if n := c.Unacked(); n != 1 {
			t.Errorf("%d messages wait, want the full one", n)
		}
		time.Sleep(2 * time.Second)
		if n := c.Unacked(); n != 0 {
			t.Errorf("%d messages wait at last", n)
		}
		var err error
		for range 1000 {
			if err = c.SendReliable(make([]byte, 1000)); err != nil {
				break
			}
		}
		if !errors.Is(err, transport.ErrBacklog) {
			t.Errorf("after 1,000 messages at once: %v, want %v", err, transport.ErrBacklog)
		}
		_ = c.Close()
		for _, err := range []error{c.Send(nil), c.SendReliable([]byte("x"))} {
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
		}
	})
}

func TestSendFromManyGoroutinesAndHandlers(t *testing.T) {
	inWorld(t, good, func(t *testing.T, w *world) {
		for g := range 8 {
			go func() {
				for i := range 50 {
					_ = w.conn.Send(fmt.Appendf(nil, "%d/%d", g, i))
					if err := w.conn.SendReliable([]byte("m")); err != nil && !errors.Is(err, transport.ErrBacklog) {
						t.Error(err)
					}
					time.Sleep(10 * time.Millisecond)
				}
			}()
		}
		time.Sleep(5 * time.Second)
		_, _, datagrams, messages := w.client.snapshot()
		if len(datagrams) != 400 || len(messages) != 400 {
			t.Errorf("%d datagrams and %d messages came back, want 400", len(datagrams), len(messages))
		}
	}, func(w *world) {
		w.server.onDatagram = func(c *endpoint.Conn, b []byte) { _ = c.Send(b) }
		w.server.onMessage = func(c *endpoint.Conn, b []byte) { _ = c.SendReliable(b) }
	})
}

// TestMaxPayload: where the path carries more than what is assumed, so does Send, until the path is
// another.
func TestMaxPayload(t *testing.T) {
	link := simnet.Config{Delay: 20 * time.Millisecond, MTU: 1400, Loss: 0.02}
	inWorld(t, link, func(t *testing.T, w *world) {
		for range 2 {
			if got := w.conn.MaxPayload(); got != transport.MaxPayload {
				t.Errorf("payloads of %d bytes at first", got)
			}
			time.Sleep(20 * time.Second)
			const datagram, payload = 1372, 1372 - 11 - 16
			if got := w.conn.Stats().MaxDatagram; got != datagram || w.conn.MaxPayload() != payload {
				t.Errorf("found %d, and payloads of %d bytes, want %d and %d", got, w.conn.MaxPayload(), datagram, payload)
			}
			for range 5 {
				if err := w.conn.Send(make([]byte, payload)); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.conn.Rebind(); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if _, _, came, _ := w.server.snapshot(); len(came) == 0 {
			t.Error("none of the largest payloads came")
		}
		if s := w.serverConn(t); s.Stats().MaxDatagram != 0 || s.MaxPayload() != transport.MaxPayload {
			t.Errorf("the server's end: %d, %d", s.Stats().MaxDatagram, s.MaxPayload())
		}
	})
}

// arrivals is a handler that passes on the sizes of payloads. It allocates nothing.
type arrivals struct {
	echo
	sizes chan int
}

func (a arrivals) Datagram(_ *endpoint.Conn, b []byte, _ time.Time) { a.sizes <- len(b) }

// tapped is an echo whose connections have a tap.
type tapped struct {
	echo
	tap func(transport.TapEvent)
}

func (h tapped) Opened(c *endpoint.Conn) { c.SetTap(h.tap) }

// pingPong connects to an echo, and returns a function that sends a payload and waits for it to
// come back.
func pingPong(t testing.TB, n transport.Network, size int, server endpoint.Handler) func() {
	t.Helper()
	cfg := endpoint.Config{Network: n, Timeout: patience}
	l := listen(t, "127.0.0.1:0", cfg, server)
	came := make(chan int, 16)
	c := dial(t, l.Addr(), cfg, arrivals{sizes: came})
	payload, lost := make([]byte, size), again(t)
	return func() {
		for len(came) > 0 {
			<-came // what was taken for lost
		}
		for {
			if err := c.Send(payload); err != nil {
				t.Error(err)
				return
			}
			select {
			case n := <-came:
				if n != size {
					t.Errorf("%d bytes came back, want %d", n, size)
				}
				return
			case <-lost:
			}
		}
	}
}

// networks are those that work outside of a synctest bubble.
func networks(t testing.TB) map[string]transport.Network {
	return map[string]transport.Network{
		"udp":    transport.UDP(),
		"simnet": newNetwork(t, simnet.Config{}),
	}
}

// TestEcho counts the allocations of a Send and a receipt at either end, with a tap and without.
func TestEcho(t *testing.T) {
	for name, n := range networks(t) {
		t.Run(name, func(t *testing.T) {
			var events atomic.Int64
			for _, server := range []endpoint.Handler{echo{}, tapped{tap: func(transport.TapEvent) { events.Add(1) }}} {
				allocs := allocs.PerRun(1000, pingPong(t, n, transport.MaxPayload, server))
				if allocs != 0 && !race.Enabled {
					t.Errorf("%v allocations for two datagrams, want 0", allocs)
				}
			}
			if n := events.Load(); n < 2000 {
				t.Errorf("the tap saw %d datagrams", n)
			}
		})
	}
}
