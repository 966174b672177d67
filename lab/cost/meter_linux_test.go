package cost

import (
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/transport"
)

// meter wraps the socket of a server. While it measures, it sends the datagrams that the server
// reads, on the goroutine that reads. Between two reads the server handles the result of the first.
type meter struct {
	transport.BatchConn
	t        *testing.B
	deadline time.Time
	plays    chan *replay
	over     chan struct{}
	coming   *replay // to be measured next
	quiet    int     // consecutive deadlines without a datagram

	play  *replay
	round int
	left  int           // datagrams of the round to be read
	begin time.Duration // of what is timed
	state meterState
	batch []transport.Datagram

	decoding, handling mirrored // nil for the transport alone

	// Of each round:
	yardstick series // receiving and counting
	whole     series // all but ticks
	decoded   series
	handled   series // decoding, restoring and a handler

	ticks time.Duration
}

// meterState is what the server does while the meter waits for it.
type meterState uint8

const (
	idle meterState = iota
	receiving
	ticking
)

// costBatchSize is the number of datagrams that the yardstick reads at once, as the transport does.
const costBatchSize = 64

func newMeter(b *testing.B) *meter {
	return &meter{t: b, plays: make(chan *replay, 1), over: make(chan struct{}), batch: newBatch(costBatchSize)}
}

// ListenPacket makes the meter a transport.Network.
func (m *meter) ListenPacket(addr string) (transport.PacketConn, error) {
	pc, err := transport.UDP().ListenPacket(addr)
	if err == nil {
		m.BatchConn = pc.(transport.BatchConn)
	}
	return m, err
}

// measure sends and handles the datagrams, and then returns.
func (m *meter) measure(p *replay) {
	m.plays <- p
	<-m.over
}

// SetReadDeadline stores the deadline while the meter measures.
func (m *meter) SetReadDeadline(t time.Time) error {
	if m.play == nil {
		return m.BatchConn.SetReadDeadline(t)
	}
	m.deadline = t
	return nil
}

// ReadBatch is called when the server has handled what the last call has returned.
func (m *meter) ReadBatch(into []transport.Datagram) (int, error) {
	if m.play == nil && !m.begun() {
		n, err := m.BatchConn.ReadBatch(into)
		if m.quiet++; !errors.Is(err, os.ErrDeadlineExceeded) {
			m.quiet = 0
		}
		return n, err
	}
	switch m.state {
	case receiving:
		if m.left > 0 {
			return m.read(into)
		}
		m.whole.add(m.elapsed())
		if m.round%2 == 1 {
			m.measureYardstick()
		}
		m.measureMirrors()
		m.round++
	case ticking:
		m.ticks += m.elapsed()
	case idle:
	}
	return m.proceed(into)
}

// begun reports whether a replay is being measured. It begins when the socket has been idle for
// some ticks: with a leftover datagram in the socket, one of each round would be read in the next.
func (m *meter) begun() bool {
	const enough = 5
	if m.coming == nil {
		select {
		case m.coming = <-m.plays:
			m.quiet = 0
		default:
		}
	}
	if m.coming == nil || m.quiet < enough {
		return false
	}
	m.play, m.coming = m.coming, nil
	runtime.LockOSThread() // until the server's goroutine ends
	m.deadline = time.Now().Add(endpoint.DefaultTick)
	return true
}

// proceed lets the server tick if that is due soon, or begins a round.
func (m *meter) proceed(into []transport.Datagram) (int, error) {
	const roundTime = 4 * time.Millisecond
	switch wait := time.Until(m.deadline); {
	case m.round == m.t.N:
		m.play, m.state = nil, idle
		err := m.BatchConn.SetReadDeadline(m.deadline)
		close(m.over)
		return 0, errors.Join(os.ErrDeadlineExceeded, err)
	case wait < roundTime:
		time.Sleep(wait)
		m.start(ticking)
		return 0, os.ErrDeadlineExceeded
	}
	if m.round%2 == 0 {
		m.measureYardstick()
	}
	m.send()
	m.left = costRound
	m.start(receiving)
	return m.read(into)
}

// send sends a round to the socket, from which all of it can then be read. Lost datagrams, which
// occur over loopback too, are not waited for.
func (m *meter) send() {
	m.play.send(m.t, m.round)
	if err := m.BatchConn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		m.t.Error(err)
	}
}

func (m *meter) read(into []transport.Datagram) (int, error) {
	n, err := m.BatchConn.ReadBatch(into[:min(len(into), m.left)])
	m.left -= n
	if errors.Is(err, os.ErrDeadlineExceeded) {
		m.t.Errorf("%d of %d datagrams were lost", m.left, costRound)
		m.left = 0
	}
	return n, err
}

// measureYardstick receives a round's datagrams and does nothing with them.
func (m *meter) measureYardstick() {
	m.send()
	m.start(idle)
	for left := costRound; left > 0; {
		n, err := m.BatchConn.ReadBatch(m.batch[:min(left, len(m.batch))])
		if err != nil {
			m.t.Error(err)
			break
		}
		left -= n
	}
	m.yardstick.add(m.elapsed())
}

// measureMirrors decodes and handles the round's payloads as the DS does.
func (m *meter) measureMirrors() {
	if m.decoding == nil {
		return
	}
	m.play.fetch(m.round)
	for i := range 2 {
		m.start(idle)
		if (m.round+i)%2 == 0 {
			m.decoding.take(m.t, m.play)
			m.decoded.add(m.elapsed())
		} else {
			m.handling.take(m.t, m.play)
			m.handled.add(m.elapsed())
		}
	}
}

func (m *meter) start(s meterState) { m.state, m.begin = s, threadCPU(m.t) }

func (m *meter) elapsed() time.Duration { return threadCPU(m.t) - m.begin }

// threadCPU returns the CPU time that the calling thread has used.
func threadCPU(b *testing.B) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		b.Error(err)
	}
	return time.Duration(t.Nano())
}
