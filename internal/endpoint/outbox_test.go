package endpoint

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/transport/session"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
	"github.com/uplink-rpc/uplink/transport"
)

// script is a BatchConn that gives out what is prepared, and notes what it is given. It does not
// take what is addressed to port 0.
type script struct {
	in      [][]transport.Datagram
	out     []string
	batches []int // sizes of the calls of WriteBatch
	direct  int   // calls of WriteTo
}

var errNoPort = errors.New("no port")

func (s *script) ReadBatch(into []transport.Datagram) (int, error) {
	if len(s.in) == 0 {
		return 0, net.ErrClosed
	}
	batch := s.in[0]
	s.in = s.in[1:]
	for i, d := range batch {
		copy(into[i].Buf, d.Buf)
		into[i].N, into[i].Addr = d.N, d.Addr
	}
	if len(batch) == 0 {
		return 0, os.ErrDeadlineExceeded
	}
	return len(batch), nil
}

func (s *script) WriteBatch(out []transport.Datagram) (int, error) {
	s.batches = append(s.batches, len(out))
	for i := range out {
		if err := s.write(out[i].Bytes(), out[i].Addr); err != nil {
			return i, err
		}
	}
	return len(out), nil
}

func (s *script) WriteTo(b []byte, to netip.AddrPort) (int, error) {
	s.direct++
	return len(b), s.write(b, to)
}

func (s *script) write(b []byte, to netip.AddrPort) error {
	if to.Port() == 0 {
		return errNoPort
	}
	s.out = append(s.out, fmt.Sprintf("%v %x", to, b))
	return nil
}

func (s *script) ReadFrom([]byte) (int, netip.AddrPort, error) {
	panic("a BatchConn is read in batches")
}
func (s *script) SetReadDeadline(time.Time) error { return nil }
func (s *script) LocalAddr() netip.AddrPort       { return netip.AddrPort{} }
func (s *script) Close() error                    { return nil }

// small returns the sizes of a loop with batches of n datagrams.
func small(n int) batchSize { return batchSize{reads: n, writes: n, bytes: wire.MaxDatagram} }

func port(n uint16) netip.AddrPort { return netip.AddrPortFrom(netip.IPv6Loopback(), n) }

// Whatever is sent, collecting or not, goes out once, as it was and in its order, and is counted.
func TestOutboxKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pc, sent := new(script), new(sentCounters)
		o := newOutbox(pc, small(rapid.IntRange(1, 10).Draw(t, "room")), sent)
		var want []string
		var failed atomic.Uint64
		var size, failures uint64
		buf := make([]byte, wire.MaxDatagram) // used again, as a session's is
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				o.setBatching(true)
			case 1:
				o.setBatching(false)
				if !slices.Equal(pc.out, want) {
					t.Fatalf("after a flush %q are out, want %q", pc.out, want)
				}
			default:
				b := buf[:rapid.OneOf(rapid.IntRange(0, 30), rapid.IntRange(0, len(buf))).Draw(t, "size")]
				for i := range b {
					b[i] = byte(len(want))
				}
				to := port(rapid.Uint16Range(0, 3).Draw(t, "port"))
				o.add(b, on(to), &failed)
				if rapid.Bool().Draw(t, "write") {
					o.write()
				}
				if to.Port() == 0 {
					failures++
					break
				}
				want = append(want, fmt.Sprintf("%v %x", to, b))
				size += uint64(len(b))
			}
		}
		o.setBatching(false)
		if !slices.Equal(pc.out, want) {
			t.Fatalf("%q are out, want %q", pc.out, want)
		}
		if n, b, f := sent.datagrams.Load(), sent.bytes.Load(), sent.failed.Load(); n != uint64(len(want)) || b != size || f != failures || failed.Load() != failures {
			t.Errorf("counted %d datagrams of %d bytes, %d and %d failed; want %d, %d, %d", n, b, f, failed.Load(), len(want), size, failures)
		}
	})
}

// TestOutboxFlushesWhenFull also checks that an empty outbox keeps no connection in memory.
func TestOutboxFlushesWhenFull(t *testing.T) {
	pc := new(script)
	o := newOutbox(pc, small(4), new(sentCounters))
	o.setBatching(true)
	for range 10 {
		o.add([]byte("ack"), on(port(1)), new(atomic.Uint64))
	}
	if want := []int{4, 4}; !slices.Equal(pc.batches, want) {
		t.Errorf("batches of %d, want %d", pc.batches, want)
	}
	o.setBatching(false)
	if want := []int{4, 4, 2}; !slices.Equal(pc.batches, want) {
		t.Errorf("batches of %d, want %d", pc.batches, want)
	}
	if kept := o.failed[:cap(o.failed)]; slices.ContainsFunc(kept, func(f *atomic.Uint64) bool { return f != nil }) {
		t.Error("a connection is kept in memory")
	}
}

func TestOutboxAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	o := newOutbox(discard{new(script)}, small(8), new(sentCounters))
	b, to, failed := make([]byte, 20), port(1), new(atomic.Uint64)
	allocs := allocs.PerRun(100, func() {
		o.setBatching(true)
		for range 20 {
			o.add(b, on(to), failed)
		}
		o.setBatching(false)
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want 0", allocs)
	}
}

// discard takes everything and notes nothing.
type discard struct{ *script }

func (discard) WriteBatch(out []transport.Datagram) (int, error) { return len(out), nil }

// echoing is an endpoint that sends everything back and notes the times.
type echoing struct {
	*loop
	times  []time.Time
	sizes  []int
	ticks  int
	stopAt int // datagrams; 0 means never
}

func (e *echoing) receive(now time.Time, d datagram) {
	e.times, e.sizes = append(e.times, now), append(e.sizes, len(d.b))
	e.outbox.add(d.b, d.from, nil)
	if len(e.times) == e.stopAt {
		e.stop()
	}
}

func (e *echoing) endBatch(time.Time) {}

func (e *echoing) tick(time.Time) {
	e.ticks++
	e.outbox.add([]byte("tick"), on(port(9)), nil)
}

// letters makes a batch of one-byte datagrams.
func letters(s string) []transport.Datagram {
	var batch []transport.Datagram
	for _, b := range []byte(s) {
		batch = append(batch, transport.Datagram{Buf: []byte{b}, N: 1, Addr: port(uint16(b))})
	}
	return batch
}

// run processes all batches in a loop.
func run(t *testing.T, stopAt int, in ...[]transport.Datagram) (*script, *echoing) {
	t.Helper()
	pc := &script{in: in}
	l := newLoop(pc, time.Hour, small(8), new(sentCounters), slog.New(slog.DiscardHandler))
	e := &echoing{loop: &l, stopAt: stopAt}
	if err := l.run(e); stopAt == 0 && !errors.Is(err, net.ErrClosed) || stopAt != 0 && err != nil {
		t.Fatal(err)
	}
	return pc, e
}

func TestLoopAnswersInBatches(t *testing.T) {
	pc, e := run(t, 0, letters("abc"), nil, letters("d"), letters("efghijkl"))
	if want := []int{3, 1, 8}; !slices.Equal(pc.batches, want) || pc.direct != 0 {
		t.Errorf("batches of %d and %d datagrams alone, want %d and 0", pc.batches, pc.direct, want)
	}
	var want []string
	for _, d := range letters("abcdefghijkl") {
		want = append(want, fmt.Sprintf("%v %x", d.Addr, d.Buf))
	}
	if !slices.Equal(pc.out, want) {
		t.Errorf("%q are out, want %q", pc.out, want)
	}
	if e.times[0] != e.times[2] || e.times[4] != e.times[11] {
		t.Error("the datagrams of a batch came at different times")
	}
}

// TestLoopEndsInBatch: what a tick sends goes out with the answers to the batch before it, behind
// them; a stop from inside ends the loop before the next datagram, and what was sent until then
// goes out; a datagram that was cut off reaches the endpoint as one that is too large.
func TestLoopEndsInBatch(t *testing.T) {
	pc := new(script)
	l := newLoop(pc, time.Hour, small(8), new(sentCounters), slog.New(slog.DiscardHandler))
	l.handle(&echoing{loop: &l}, time.Time{}, letters("ab"), true)
	if want := []int{3}; !slices.Equal(pc.batches, want) || pc.out[2] != fmt.Sprintf("%v %x", port(9), "tick") {
		t.Errorf("batches of %d, %q are out", pc.batches, pc.out)
	}
	l.outbox.add([]byte("later"), on(port(9)), nil)
	if l.outbox.write(); pc.direct != 1 {
		t.Error("what is sent outside of a batch waits")
	}

	pc, e := run(t, 2, letters("abcd"), letters("e"))
	if len(e.times) != 2 || e.ticks != 0 || len(pc.out) != 2 {
		t.Errorf("%d datagrams and %d ticks handled, %d answered, want 2, 0, 2", len(e.times), e.ticks, len(pc.out))
	}

	large := transport.Datagram{Buf: bytes.Repeat([]byte{1}, wire.MaxDatagram+1), N: 60000, Addr: port(1)}
	if _, e = run(t, 0, []transport.Datagram{large}); !slices.Equal(e.sizes, []int{wire.MaxDatagram + 1}) {
		t.Errorf("got %d bytes, want %d", e.sizes, wire.MaxDatagram+1)
	}
}

// TestUnbatched makes batches of what a PacketConn does one by one.
func TestUnbatched(t *testing.T) {
	pc := new(script)
	s := batched(struct{ transport.PacketConn }{pc})
	out := letters("abc")
	out[1].Addr = port(0)
	if sent, err := s.WriteBatch(out); sent != 1 || !errors.Is(err, errNoPort) || pc.direct != 2 {
		t.Errorf("sent %d, %v, by %d calls", sent, err, pc.direct)
	}
	if batched(pc) != transport.BatchConn(pc) {
		t.Error("a BatchConn is wrapped")
	}
}

// handling is a handler that notes how many datagrams it had, and the listener had counted, when a
// batch was over.
type handling struct {
	calls
	l       *Listener
	handled int
	had     int
	counted uint64
}

func (h *handling) Handled() {
	h.handled++
	h.had, h.counted = h.datagrams, h.l.Stats().DatagramsReceived
}

// TestPublish: what a batch has brought is counted when it is over, all of it, and the handler
// hears of that after it.
func TestPublish(t *testing.T) {
	d := newTestListener(t, Config{})
	h := &handling{l: d.Listener}
	d.handler = h
	g := d.visit(t, clientAddr, 0).open()
	d.endBatch()
	before, handled := d.Listener.Stats(), h.handled
	const count = 3
	for range count {
		if err := g.Send(time.Now(), []byte("call")); err != nil {
			t.Fatal(err)
		}
		d.receive(clientAddr, g.out[len(g.out)-1])
	}
	d.receive(clientAddr, []byte{0xff})
	if st := d.Listener.Stats(); st.DatagramsReceived != before.DatagramsReceived {
		t.Errorf("%d datagrams counted within the batch", st.DatagramsReceived-before.DatagramsReceived)
	}
	d.endBatch()
	st := d.Listener.Stats()
	if n := st.DatagramsReceived - before.DatagramsReceived; n != count+1 || st.Dropped.Malformed != before.Dropped.Malformed+1 {
		t.Errorf("%d datagrams counted, want %d; dropped: %+v", n, count+1, st.Dropped)
	}
	if h.handled != handled+1 || h.had != count || h.counted != st.DatagramsReceived {
		t.Errorf("%+v", h)
	}
}

func TestEndsAreCounted(t *testing.T) {
	var st transport.ListenerStats
	for _, cause := range []error{session.ErrProtocol, fmt.Errorf("of a shard: %w", session.ErrUnacknowledged), session.ErrUnacknowledged, session.ErrTimeout, nil} {
		countEnd(&st, cause)
	}
	if st.ProtocolErrors != 1 || st.Unacknowledged != 2 {
		t.Errorf("%d protocol errors and %d unacknowledged, want 1 and 2", st.ProtocolErrors, st.Unacknowledged)
	}
}
