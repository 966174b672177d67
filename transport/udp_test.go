package transport_test

import (
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// echo is a handler that sends everything back. It allocates nothing.
type echo struct{}

func (echo) Opened(*transport.Conn)                            {}
func (echo) Closed(*transport.Conn, error)                     {}
func (echo) Datagram(c *transport.Conn, b []byte, _ time.Time) { _ = c.Send(b) }
func (echo) Message(c *transport.Conn, b []byte, _ time.Time)  { _ = c.SendReliable(b) }
func (echo) Tick(time.Time)                                    {}

// sink is a handler that takes everything.
type sink struct{ echo }

func (sink) Datagram(*transport.Conn, []byte, time.Time) {}

// arrivals is a handler that passes on the sizes of payloads and messages. It allocates nothing.
type arrivals chan int

func (a arrivals) Opened(*transport.Conn)                            {}
func (a arrivals) Closed(*transport.Conn, error)                     {}
func (a arrivals) Datagram(_ *transport.Conn, b []byte, _ time.Time) { a <- len(b) }
func (a arrivals) Message(_ *transport.Conn, b []byte, _ time.Time)  { a <- len(b) }
func (a arrivals) Tick(time.Time)                                    {}

// networks are those that work outside of a synctest bubble.
func networks(t testing.TB) map[string]transport.Network {
	return map[string]transport.Network{
		"udp":    transport.UDP(),
		"simnet": newNetwork(t, simnet.Config{}),
	}
}

// patience is how long a connection over sockets may hear nothing: as long as a busy machine may
// stand still.
const patience = time.Minute

// again ticks when a datagram that has brought no answer may be taken for lost, as it can be over
// loopback too.
func again(t testing.TB) <-chan time.Time {
	t.Helper()
	tick := time.NewTicker(time.Second)
	t.Cleanup(tick.Stop)
	return tick.C
}

// pingPong connects to an echo, and returns a function that sends a payload and waits for it to
// come back.
func pingPong(t testing.TB, n transport.Network, size int) func() {
	t.Helper()
	cfg := transport.Config{Network: n, Timeout: patience}
	l := listen(t, "127.0.0.1:0", cfg, echo{})
	came := make(arrivals, 16)
	c, err := transport.Dial(t.Context(), l.Addr().String(), cfg, came)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
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

func TestEcho(t *testing.T) {
	for name, n := range networks(t) {
		t.Run(name, func(t *testing.T) {
			exchange := pingPong(t, n, transport.MaxPayload)
			for range 100 {
				exchange()
			}
		})
	}
}

// One run is a Send and a receipt at either end.
func TestNoAllocation(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	for name, n := range networks(t) {
		t.Run(name, func(t *testing.T) {
			if allocs := testing.AllocsPerRun(1000, pingPong(t, n, 16)); allocs != 0 {
				t.Errorf("%v allocations for two datagrams, want 0", allocs)
			}
		})
	}
}

// BenchmarkEcho is a 16-byte payload to the server and back, through both loops.
func BenchmarkEcho(b *testing.B) {
	for name, n := range networks(b) {
		b.Run(name, func(b *testing.B) {
			exchange := pingPong(b, n, 16)
			b.ReportAllocs()
			for b.Loop() {
				exchange()
			}
		})
	}
}

// BenchmarkSend measures a call of Send.
func BenchmarkSend(b *testing.B) {
	l := listen(b, "127.0.0.1:0", transport.Config{}, sink{})
	c, err := transport.Dial(b.Context(), l.Addr().String(), transport.Config{}, echo{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	payload := make([]byte, 16)
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Send(payload); err != nil {
			b.Fatal(err)
		}
	}
}
