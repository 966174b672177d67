// Package streams implements streams of bytes over the bulk channel of a session, with flow
// control, for both endpoints. A [Mux] has no goroutine of its own: the transport takes messages
// from it when the channel has room, and delivers those of the peer.
package streams

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/transport"
)

// Each end limits the streams that it opens to ownOpens and enforces peerOpens on the other.
// peerOpens is higher: at most MaxStreams streams are open at a time, so an end within ownOpens
// never exceeds it, however the network delays messages.
var (
	ownOpens  = ratelimit.Rate{PerSecond: 16, Burst: 32}
	peerOpens = ratelimit.Rate{PerSecond: 2 * ownOpens.PerSecond, Burst: ownOpens.Burst + MaxStreams}
)

// DefaultRate is the default of the rate limit of streams in one direction of a session, and
// MinRate its minimum, in bytes per second.
const (
	DefaultRate = 256 << 10
	MinRate     = 4 << 10
)

// Owner is the session of a [Mux].
type Owner interface {
	// Wake requests that the transport calls [Mux.Next]. It is called without a lock.
	Wake()
	// Accept is called with each stream of the peer whose name is not reserved. It reports whether
	// the game reads streams. If so, it runs [Reader.Serve] on another goroutine.
	Accept(r *Reader) bool
	// AcceptReserved is called with each stream of the peer whose name is reserved. If it returns a
	// function, that function is called at the end of the stream, by the caller of [Mux.Deliver].
	// It is called with all the data, or with an error if the stream was aborted or has more than
	// [Window] bytes. The stream stays open until [Reader.Finish]. If AcceptReserved returns nil,
	// the peer is informed that this end handles no such streams.
	AcceptReserved(r *Reader) func(data []byte, err error)
	// Count counts bytes of data.
	Count(sent, received int)
}

// Mux is one end of all streams of a session. It is safe for concurrent use.
type Mux struct {
	owner Owner

	mu  sync.Mutex
	err error // reason why the session has ended
	*slots
}

// slots holds the streams of both directions by number. It is nil before the first stream, since
// most sessions have none.
type slots struct {
	out       [MaxStreams]*Writer
	in        [MaxStreams]*Reader
	turn      int       // number of the stream that Next serves first
	start     time.Time // origin of the rate limits' clock
	own, peer ratelimit.Bucket
	calls     []func() // callbacks of finished reserved streams, to call without the lock
}

// New returns the Mux of a new session.
func New(owner Owner) *Mux { return &Mux{owner: owner} }

// use creates slots before the first stream. The caller holds m.mu.
func (m *Mux) use(now time.Time) {
	if m.slots == nil {
		m.slots = &slots{start: now}
	}
}

// Busy reports whether there are streams in either direction.
func (m *Mux) Busy() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.slots == nil {
		return false
	}
	for i := range MaxStreams {
		if m.out[i] != nil || m.in[i] != nil && !m.in[i].released {
			return true
		}
	}
	return false
}

// End fails all streams, because the session has ended with err.
func (m *Mux) End(err error) {
	for _, f := range m.end(err) {
		f()
	}
}

// end is End without the callbacks, which it returns. The caller calls them without the lock.
func (m *Mux) end(err error) (calls []func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
	if m.slots == nil {
		return nil
	}
	for i := range MaxStreams {
		if w := m.out[i]; w != nil {
			w.finish(err)
		}
		if r := m.in[i]; r != nil {
			r.fail(err)
		}
	}
	calls, m.calls = m.calls, nil
	return calls
}

// Open opens a stream. If ctx is done before the end of the stream, the stream is aborted.
func (m *Mux) Open(ctx context.Context, now time.Time, name string) (*Writer, error) {
	if len(name) == 0 || len(name) > MaxName {
		return nil, fmt.Errorf("a stream's name of %d bytes, want 1 to %d", len(name), MaxName)
	}
	if strings.HasPrefix(name, ReservedPrefix) {
		return nil, fmt.Errorf("a stream's name %q: choose one that does not begin with %q, which is reserved", name, ReservedPrefix)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	w, err := m.open(now, name, nil)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { w.abort(context.Cause(ctx), "") })
	m.mu.Lock()
	w.release = stop
	if w.finished {
		stop()
	}
	m.mu.Unlock()
	m.owner.Wake()
	return w, nil
}

// SendReserved sends data, which must not change, in a stream with a reserved name. It does not
// wait. over is called, without a lock, when the peer is done or the session has ended. Its error
// is the one that [Writer.Close] would return.
func (m *Mux) SendReserved(now time.Time, name string, data []byte, over func(error)) (*Writer, error) {
	w, err := m.open(now, name, func(w *Writer) { w.pending, w.closing, w.over = data, true, over })
	if err == nil {
		m.owner.Wake()
	}
	return w, err
}

func (m *Mux) open(now time.Time, name string, prepare func(*Writer)) (*Writer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return nil, m.err
	}
	m.use(now)
	for i := range m.out {
		if m.out[i] != nil {
			continue
		}
		if !m.own.Take(now.Sub(m.start), ownOpens, 1) {
			return nil, fmt.Errorf("%w: more than %v streams a second", transport.ErrBacklog, ownOpens.PerSecond)
		}
		m.out[i] = &Writer{mux: m, number: i, name: name, credit: Window, cond: sync.Cond{L: &m.mu}}
		if prepare != nil {
			prepare(m.out[i])
		}
		return m.out[i], nil
	}
	return nil, fmt.Errorf("%w: %d streams are open, the maximum", transport.ErrBacklog, MaxStreams)
}

// Next appends the next message to send to b, or nothing if there is none. The transport calls it
// with the lock of the connection.
func (m *Mux) Next(b []byte, most int) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil || m.slots == nil {
		return b
	}
	for _, r := range m.in { // readers first: the peer waits for credits
		if next := r.next(b); len(next) > len(b) {
			return next
		}
	}
	for i := range MaxStreams {
		n := (m.turn + i) % MaxStreams
		if next := m.out[n].next(b, most); len(next) > len(b) {
			m.turn = n + 1
			return next
		}
	}
	return b
}

// Deliver handles a message of the peer. An error means that it violates the protocol.
func (m *Mux) Deliver(now time.Time, b []byte) error {
	k, number, body, n, err := parse(b)
	if err != nil {
		return err
	}
	calls, err := m.receive(now, k, number, body, n)
	for _, f := range calls {
		f()
	}
	if err == nil && (k == credit || k == open) {
		m.owner.Wake()
	}
	return err
}

// receive handles a parsed message. It returns the callbacks to call without the lock.
func (m *Mux) receive(now time.Time, k kind, number int, body []byte, n int) (calls []func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.use(now)
	switch {
	case m.err != nil:
	case k >= credit:
		err = m.out[number].receive(k, n)
	case k == open:
		err = m.accept(now, number, string(body))
	default:
		err = m.in[number].receive(k, body)
	}
	calls, m.calls = m.calls, nil
	return calls, err
}

// accept registers a stream of the peer. The caller holds m.mu.
func (m *Mux) accept(now time.Time, number int, name string) error {
	switch r := m.in[number]; {
	case r != nil && !r.released:
		return fmt.Errorf("%w: number %d is in use", errMalformed, number)
	case !m.peer.Take(now.Sub(m.start), peerOpens, 1):
		return fmt.Errorf("%w: more than %v streams a second", errMalformed, peerOpens.PerSecond)
	}
	r := &Reader{mux: m, number: number, name: name, left: Window, cond: sync.Cond{L: &m.mu}}
	m.in[number] = r
	accepted := false
	if strings.HasPrefix(name, ReservedPrefix) {
		r.whole = m.owner.AcceptReserved(r)
		accepted = r.whole != nil
	} else {
		accepted = m.owner.Accept(r)
	}
	if !accepted {
		r.result, r.finished = unhandled, true
	}
	return nil
}

// Writer is the sending end of a stream. It implements transport.StreamWriter.
type Writer struct {
	mux    *Mux
	number int
	name   string

	// Mux.mu guards the rest.
	cond     sync.Cond
	opened   bool   // the open message was sent
	pending  []byte // data of the current Write that is not sent yet
	credit   int    // bytes that may be sent
	closing  bool   // Close was called
	ended    bool   // the end or abort message was sent
	aborted  bool
	reason   string
	err      error // error that all methods return
	finished bool  // the peer is done, or the session has ended
	release  func() bool
	over     func(error) // callback of SendReserved
}

// Write implements transport.StreamWriter.
func (w *Writer) Write(b []byte) (int, error) {
	m := w.mux
	m.mu.Lock()
	defer m.mu.Unlock()
	if w.closing && w.err == nil {
		return 0, errors.New("write to a closed stream")
	}
	w.pending = b
	w.wake()
	for w.err == nil && len(w.pending) > 0 {
		w.cond.Wait()
	}
	n := len(b) - len(w.pending)
	w.pending = nil
	return n, w.err
}

// wake requests a call of next. The caller holds Mux.mu, which is released during the request.
func (w *Writer) wake() {
	w.mux.mu.Unlock()
	w.mux.owner.Wake()
	w.mux.mu.Lock()
}

// Close implements transport.StreamWriter.
func (w *Writer) Close() error {
	m := w.mux
	m.mu.Lock()
	defer m.mu.Unlock()
	w.closing = true
	w.wake()
	for w.err == nil && !w.finished {
		w.cond.Wait()
	}
	return w.err
}

// Abort implements transport.StreamWriter.
func (w *Writer) Abort(reason string) {
	w.abort(fmt.Errorf("%w by this end: %s", transport.ErrStreamAborted, reason), reason)
}

func (w *Writer) abort(err error, reason string) {
	m := w.mux
	m.mu.Lock()
	defer m.mu.Unlock()
	if w.finished || w.err != nil {
		return
	}
	w.aborted, w.err, w.reason = true, err, reason[:min(len(reason), MaxReason)]
	w.cond.Broadcast()
	w.wake()
}

// next appends the next message to the reading end. The caller holds Mux.mu.
func (w *Writer) next(b []byte, most int) []byte {
	switch {
	case w == nil || w.ended:
	case !w.opened:
		w.opened = true
		return append(appendHeader(b, open, w.number), w.name...)
	case w.aborted:
		w.ended = true
		return append(appendHeader(b, abort, w.number), w.reason...)
	case len(w.pending) > 0 && w.credit > 0:
		n := min(len(w.pending), w.credit, maxData, most)
		b = append(appendHeader(b, data, w.number), w.pending[:n]...)
		w.pending = w.pending[n:]
		w.credit -= n
		w.mux.owner.Count(n, 0)
		if len(w.pending) == 0 {
			w.cond.Broadcast()
		}
	case len(w.pending) == 0 && w.closing:
		w.ended = true
		return appendHeader(b, ending, w.number)
	}
	return b
}

// receive handles a message of the reading end. The caller holds Mux.mu.
func (w *Writer) receive(k kind, n int) error {
	switch {
	case w == nil || !w.opened:
		return fmt.Errorf("%w: kind %d for a stream that is not open", errMalformed, k)
	case k == credit:
		if w.credit += n; n == 0 || w.credit > Window {
			return fmt.Errorf("%w: a credit of %d bytes", errMalformed, n)
		}
		return nil
	case result(n) == complete && !w.ended:
		return fmt.Errorf("%w: complete before its end", errMalformed)
	case result(n) == complete:
		w.finish(nil)
	case result(n) == unhandled:
		w.finish(fmt.Errorf("%w: its Config.Hooks.OnStream is not set", transport.ErrUnhandled))
	default:
		w.finish(fmt.Errorf("%w: the other end has not read all of it", transport.ErrStreamAborted))
	}
	w.mux.out[w.number] = nil
	return nil
}

// finish ends the stream with err, unless it has failed before. The caller holds Mux.mu.
func (w *Writer) finish(err error) {
	w.finished = true
	if w.err == nil {
		w.err = err
	}
	if w.release != nil {
		w.release()
	}
	if over := w.over; over != nil {
		err, w.over = w.err, nil
		w.mux.calls = append(w.mux.calls, func() { over(err) })
	}
	w.cond.Broadcast()
}

// Reader is the receiving end of a stream. It implements transport.StreamReader.
type Reader struct {
	mux    *Mux
	number int
	name   string

	// Mux.mu guards the rest.
	cond     sync.Cond
	buf      []byte // received data
	off      int    // number of bytes of buf that were read
	left     int    // bytes that the peer may still send
	read     int    // bytes that were read since the last credit
	over     bool   // the end was received
	err      error  // the stream was aborted, or the session has ended
	eof      bool   // Read has returned io.EOF
	finished bool   // the game reads no more
	result   result // result sent with done, if finished
	released bool   // the done message was sent

	whole func(data []byte, err error) // callback of a reserved stream; nil after the call
}
