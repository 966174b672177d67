package cost

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
)

// costRound is the number of datagrams that are timed together.
const costRound = 256

// maxDatagram is the size of the largest datagram that the transport sends, in bytes.
const maxDatagram = 1472

// BenchmarkDatagramCost measures the cost of a datagram to the DS, in CPU time of the receiving
// thread. An iteration is a round of 256 datagrams that were encrypted before and wait in the
// socket: eight from each of 32 players, whose state fits the processor's caches, or one from each
// of 256, whose state does not. For comparison the same thread receives and only counts the same
// datagrams (yardstick), decodes them, and decodes, restores and handles them. The rest is the cost
// of transport and DS. Ticks, which send acks and heartbeats, are timed separately.
//
// In rows named transport the handler ignores datagrams. Rows named ds have an RPC of one bool,
// whose decoding is cheap. Rows named call have an RPC of 20 components.
func BenchmarkDatagramCost(b *testing.B) {
	for _, players := range []int{32, 256} {
		for _, suite := range []transport.Suite{transport.None, transport.AES128GCM, transport.AES128CTRHMAC8} {
			name := fmt.Sprintf("/%d/%v", players, suite)
			b.Run("transport"+name, func(b *testing.B) { benchmarkTransportCost(b, players, suite) })
			b.Run("ds"+name, func(b *testing.B) { benchmarkDSCost(b, players, suite, rpcdelta.RLE, jumpAt) })
			b.Run("call"+name, func(b *testing.B) { benchmarkDSCost(b, players, suite, rpcdelta.Adaptive, uplinktest.PawnAt) })
		}
	}
}

// jump is a call with one bit.
type jump struct{ Up bool }

func jumpAt(n int) jump { return jump{Up: n/30%2 == 1} }

// counting is a endpoint.Handler that counts datagrams.
type counting struct {
	unheard
	count int
}

func (c *counting) Datagram(*endpoint.Conn, []byte, time.Time) { c.count++ }

func benchmarkTransportCost(b *testing.B, players int, suite transport.Suite) {
	m := newMeter(b)
	l, err := endpoint.Listen("127.0.0.1:0", endpoint.Config{
		Network: m, Suites: []transport.Suite{suite}, Insecure: true, Timeout: time.Hour,
	})
	uplinktest.Must(b, err)
	done := make(chan error, 1)
	var handler counting
	go func() { done <- l.Serve(context.Background(), &handler) }()
	m.measure(recording[uplinktest.Pawn]{suite: suite, codec: rpcdelta.Adaptive, at: uplinktest.PawnAt}.record(b, l.Addr(), players))
	if want := b.N * costRound; handler.count != want {
		b.Errorf("%d datagrams came, want %d; dropped: %+v", handler.count, want, l.Stats().Dropped)
	}
	uplinktest.Must(b, l.Close())
	uplinktest.Must(b, <-done)
	m.report(b)
}

func benchmarkDSCost[T any](b *testing.B, players int, suite transport.Suite, codec rpcdelta.Codec, at func(n int) T) {
	m := newMeter(b)
	srv, err := ds.Listen("127.0.0.1:0", ds.Config{
		Network: m, Transport: ds.Transport{Suites: []transport.Suite{suite}, Insecure: true, Timeout: time.Hour}, Limits: ds.Limits{RateSlack: ds.MaxRateSlack},
	})
	uplinktest.Must(b, err)
	handled := 0
	handle := func(*ds.Player, ds.Frame[T]) { handled++ }
	uplinktest.Must(b, ds.Handle(srv, "Move", handle))
	done := make(chan error, 1)
	go func() { done <- srv.Serve(context.Background()) }()
	p := recording[T]{suite: suite, codec: codec, at: at, bind: true}.record(b, srv.Addr(), players)
	m.decoding, m.handling = newMirror[T](b, players, codec, nil), newMirror(b, players, codec, handle)
	m.measure(p)
	st := srv.Stats()
	if want := 2 * b.N * costRound; handled != want {
		b.Errorf("%d frames handled, want %d; dropped: %+v, %+v", handled, want, st.Transport.Dropped, st.RPCs[0].Drops)
	}
	uplinktest.Must(b, srv.Close())
	uplinktest.Must(b, <-done)
	m.report(b)
	if st.Acks.Messages != 0 {
		b.ReportMetric(float64(m.ticks.Nanoseconds())/float64(st.Acks.Messages), "ticks-ns/ack")
	}
}

// series is a time for each round, per datagram, in nanoseconds.
type series []float64

func (s *series) add(t time.Duration) { *s = append(*s, float64(t.Nanoseconds())/costRound) }

// minus is the differences to others of the same rounds.
func (s series) minus(others ...series) series {
	d := slices.Clone(s)
	for _, o := range others {
		for i := range o {
			d[i] -= o[i]
		}
	}
	return d
}

// over is the quotients.
func (s series) over(o series) series {
	q := slices.Clone(s)
	for i := range o {
		q[i] /= o[i]
	}
	return q
}

// quartiles are the lower one, the median and the upper one.
func (s series) quartiles() (lower, median, upper float64) {
	s = slices.SortedFunc(slices.Values(s), cmp.Compare)
	return s[len(s)/4], s[len(s)/2], s[len(s)*3/4]
}

// report reports the medians and logs the quartiles.
func (m *meter) report(b *testing.B) {
	received, rest := m.yardstick, m.whole.minus(m.yardstick, m.handled)
	row := func(name, unit string, s series) {
		if len(s) == 0 {
			return
		}
		lower, median, upper := s.quartiles()
		b.ReportMetric(median, name+unit)
		if b.N > 1 {
			b.Logf("%-12s %8.2f (%.2f to %.2f)", name, median, lower, upper)
		}
	}
	b.ReportMetric(0, "ns/op") // mostly waiting
	row("yardstick", "-ns", received)
	row("decode", "-ns", m.decoded)
	row("handle", "-ns", m.handled.minus(m.decoded))
	row("rest", "-ns", rest)
	row("rest", "/yardstick", rest.over(received))
	row("whole", "-ns", m.whole)
}
