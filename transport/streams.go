package transport

import (
	"errors"
	"io"
)

// ErrStreamAborted means that a stream ended before all of it was read: one end aborted it, or the
// game at the reading end returned from its callback.
var ErrStreamAborted = errors.New("the stream was aborted")

// StreamWriter is the sending end of a stream: bytes in order, more than a message can carry, which
// do not delay messages. Errors wrap an error of this package if the session has ended,
// [ErrStreamAborted], [ErrUnhandled], or are the cause of the stream's context. Write and Close are
// for one goroutine at a time.
type StreamWriter interface {
	// Write waits until all of b was passed to the network; up to 64 KiB may be in flight or unread
	// at the other end. Close waits until the other end has read everything up to io.EOF: only then
	// its error is nil.
	io.WriteCloser
	// Abort ends the stream unless everything was sent. The error of the other end contains the
	// first 256 bytes of the reason. It does not wait, and has no effect after Close has returned.
	Abort(reason string)
}

// StreamReader is the receiving end of a stream. Read waits for data. After all of it, the error is
// io.EOF; otherwise it wraps [ErrStreamAborted], or the reason why the session has ended.
type StreamReader interface {
	io.Reader
	// Name returns the name of the stream, which the other end chose: 1 to 128 arbitrary bytes.
	Name() string
}
