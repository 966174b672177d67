package transport_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// spy is a tap that notes all.
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

// TestTap taps both ends of a bad link: each end sees what it sends, and what of the other's comes,
// as the handler does, under the numbers and sizes of the wire.
func TestTap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up, down := &spy{}, &spy{}
		w := &world{network: newNetwork(t, bad(3)), server: &recorder{t: t}, client: &recorder{t: t}}
		w.server.onOpened = func(c *transport.Conn) { c.SetTap(down.record) }
		w.client.onOpened = func(c *transport.Conn) { c.SetTap(up.record) }
		w.cfg = transport.Config{Network: w.network}
		w.listener = listen(t, serverAddr, w.cfg, w.server)
		w.conn = dial(t, w.listener.Addr(), w.cfg, w.client)
		s := w.serverConn(t)
		const count = 300
		for i := range count {
			for _, c := range []*transport.Conn{w.conn, s} {
				if err := c.Send(fmt.Appendf(nil, "datagram %d", i)); err != nil {
					t.Fatal(err)
				}
				if i%10 == 0 {
					if err := c.SendReliable(fmt.Appendf(nil, "message %d", i)); err != nil {
						t.Fatal(err)
					}
				}
			}
			time.Sleep(10 * time.Millisecond)
		}
		if err := w.conn.Send(make([]byte, 2000)); err == nil {
			t.Error("2000 bytes were sent")
		}
		time.Sleep(5 * time.Second)
		for _, way := range []struct {
			from, to *spy
			handler  *recorder
			long     bool
		}{{up, down, w.server, true}, {down, up, w.client, false}} {
			sent, came := way.from.take(true, false), way.to.take(false, false)
			if len(sent) != count || len(came) < count/2 || len(came) >= count {
				t.Errorf("%d sent, %d came", len(sent), len(came))
			}
			known := map[uint64]transport.TapEvent{}
			for i, c := range sent {
				if i > 0 && c.Number <= sent[i-1].Number || string(c.Body) != fmt.Sprint("datagram ", i) || c.At.IsZero() {
					t.Fatalf("%+v after %+v", c, sent[max(i, 1)-1])
				}
				known[c.Number] = c
				size := transport.HeaderSize + len(c.Body) + transport.AES128GCM.Overhead()
				if c.Size != size && (!way.long || c.Size != size+8) {
					t.Fatalf("%d bytes of %d", c.Size, len(c.Body))
				}
			}
			_, _, datagrams, messages := way.handler.snapshot()
			for i, c := range came {
				want := known[c.Number]
				if !bytes.Equal(c.Body, want.Body) || c.Size != want.Size || string(c.Body) != datagrams[i] {
					t.Fatalf("%+v came of %+v, the handler got %q", c, want, datagrams[i])
				}
			}
			if a, b := way.from.take(true, true), way.to.take(false, true); len(a) != count/10 || len(b) != count/10 || len(messages) != count/10 || !bytes.Equal(a[7].Body, b[7].Body) || !bytes.Equal(a[7].Body, messages[7]) {
				t.Errorf("%d messages sent, %d came", len(a), len(b))
			}
		}
	})
}

// tapped is an echo whose connections have a tap.
type tapped struct {
	echo
	tap func(transport.TapEvent)
}

func (h tapped) Opened(c *transport.Conn) { c.SetTap(h.tap) }

func TestTapNoAllocation(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	cfg := transport.Config{Network: newNetwork(t, simnet.Config{})}
	events := 0
	l := listen(t, "127.0.0.1:0", cfg, tapped{tap: func(transport.TapEvent) { events++ }})
	came := make(arrivals, 16)
	c := dial(t, l.Addr(), cfg, came)
	payload := make([]byte, 16)
	if n := testing.AllocsPerRun(100, func() {
		if err := c.Send(payload); err != nil {
			t.Error(err)
		}
		<-came
	}); n != 0 {
		t.Errorf("%v allocations for two datagrams", n)
	}
	_ = l.Close()
	if events < 200 {
		t.Errorf("%d datagrams were seen", events)
	}
}
