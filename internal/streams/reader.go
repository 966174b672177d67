package streams

import (
	"fmt"
	"io"

	"github.com/uplink-rpc/uplink/transport"
)

// Name implements transport.StreamReader.
func (r *Reader) Name() string { return r.name }

// Serve calls f, the game's callback for the stream, and then frees the stream.
func (r *Reader) Serve(f func()) {
	defer r.finish() // also after runtime.Goexit
	f()
}

// Finish frees a reserved stream and reports to the peer whether it was complete. Before the end of
// the stream it counts as incomplete.
func (r *Reader) Finish(complete bool) {
	r.mux.mu.Lock()
	r.eof = r.over && complete
	r.mux.mu.Unlock()
	r.finish()
}

// call calls the callback whole of a reserved stream. The caller holds Mux.mu.
func (r *Reader) call(err error) {
	whole, data := r.whole, r.buf
	if whole == nil {
		return
	}
	r.whole, r.buf = nil, nil
	r.mux.calls = append(r.mux.calls, func() { whole(data, err) })
}

func (r *Reader) finish() {
	m := r.mux
	m.mu.Lock()
	r.finished, r.buf = true, nil
	if !r.eof {
		r.result = stopped
	}
	r.cond.Broadcast()
	m.mu.Unlock()
	m.owner.Wake()
}

// Read implements transport.StreamReader.
func (r *Reader) Read(b []byte) (int, error) {
	m := r.mux
	m.mu.Lock()
	for r.off == len(r.buf) && !r.over && r.err == nil && !r.finished && len(b) > 0 {
		r.cond.Wait()
	}
	n := copy(b, r.buf[r.off:])
	r.off += n
	r.read += n
	var err error
	switch {
	case n > 0 || len(b) == 0:
	case r.finished:
		err = fmt.Errorf("%w: OnStream has returned", transport.ErrStreamAborted)
	case r.over:
		r.eof, err = true, io.EOF
	default:
		err = r.err
	}
	due := r.creditDue()
	m.mu.Unlock()
	if due {
		m.owner.Wake()
	}
	return n, err
}

// creditDue reports whether the game has read enough for a credit message.
func (r *Reader) creditDue() bool { return r.read >= Window/4 && !r.over && r.err == nil }

// next appends the next message to the writing end. The caller holds Mux.mu.
func (r *Reader) next(b []byte) []byte {
	switch {
	case r == nil || r.released:
	case r.finished:
		r.released = true
		return append(appendHeader(b, done, r.number), byte(r.result))
	case r.creditDue():
		b = appendCredit(b, r.number, r.read)
		r.left += r.read
		r.read = 0
	}
	return b
}

// receive handles a message of the writing end. After the game has stopped reading, data still in
// flight is counted and dropped. The caller holds Mux.mu.
func (r *Reader) receive(k kind, body []byte) error {
	switch {
	case r == nil || r.over || r.err != nil:
		return fmt.Errorf("%w: kind %d for a stream that is not open", errMalformed, k)
	case k == ending:
		r.over = true
		r.call(nil)
	case k == abort:
		r.fail(fmt.Errorf("%w by the other end: %q", transport.ErrStreamAborted, body))
	case len(body) > r.left:
		return fmt.Errorf("%w: %d bytes, %d are permitted", errMalformed, len(body), r.left)
	default:
		r.left -= len(body)
		r.mux.owner.Count(0, len(body))
		if !r.finished {
			r.append(body)
		}
	}
	r.cond.Broadcast()
	return nil
}

// append appends received bytes to the buffer, which grows up to Window bytes.
func (r *Reader) append(b []byte) {
	if len(r.buf)+len(b) > cap(r.buf) {
		rest := r.buf[r.off:]
		if need := len(rest) + len(b); need > cap(r.buf) {
			r.buf = make([]byte, 0, min(max(2*need, maxData), Window))
		}
		r.buf, r.off = append(r.buf[:0], rest...), 0
	}
	r.buf = append(r.buf, b...)
}

// fail ends the stream with err before all data was received. The caller holds Mux.mu.
func (r *Reader) fail(err error) {
	if r.err == nil && !r.over {
		r.err = err
		r.call(err)
	}
	r.cond.Broadcast()
}
