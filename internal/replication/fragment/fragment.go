// Package fragment splits messages that are larger than a datagram into fragments and reassembles
// them. Fragments may be lost and reordered.
//
// A fragment is a header of 4 bytes and a part of the message:
//
//	0-1  sequence number of the message, u16, low byte first: fragmented messages are counted from 0
//	2    index of the fragment
//	3    number of fragments - 1
//	4-   the part: of a size that both ends know, except the last part, which may be smaller
package fragment

import (
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	// HeaderSize is the size of a fragment's header in bytes.
	HeaderSize = 4
	// MaxCount is the maximum number of fragments of a message.
	MaxCount = 64
	// Window is the number of messages that are reassembled at the same time: the newest of which a
	// fragment was received, and those before it.
	Window = 4
)

var (
	// ErrTooLarge is returned for a message of more than MaxCount fragments.
	ErrTooLarge = errors.New("fragment: message too large")
	// ErrMalformed is returned for a fragment that no Splitter makes.
	ErrMalformed = errors.New("fragment: malformed")
	// ErrLate is returned for a fragment of a message that is older than the Window.
	ErrLate = errors.New("fragment: too late")
	// ErrDuplicate is returned for a fragment that was received before.
	ErrDuplicate = errors.New("fragment: duplicate")
)

// Splitter splits messages. The zero value is ready. Not safe for concurrent use.
type Splitter struct{ next uint16 }

// Fragments are the fragments of one message.
type Fragments struct {
	rest         []byte
	seq          uint16
	part         int
	index, count int
}

// Split splits a message into parts of part bytes. The message must not be modified until the last
// fragment was appended. It is an error if the message does not have 2 to MaxCount parts: send a
// smaller one as it is.
func (s *Splitter) Split(message []byte, part int) (Fragments, error) {
	n := (len(message) + part - 1) / part
	switch {
	case n > MaxCount:
		return Fragments{}, fmt.Errorf("%w: %d bytes, want at most %d", ErrTooLarge, len(message), MaxCount*part)
	case n < 2:
		return Fragments{}, fmt.Errorf("%w: %d bytes fit one part of %d", ErrMalformed, len(message), part)
	}
	f := Fragments{rest: message, seq: s.next, part: part, count: n}
	s.next++
	return f, nil
}

// Count returns the number of fragments.
func (f *Fragments) Count() int { return f.count }

// Next appends the next fragment to dst. It returns false after the last one.
func (f *Fragments) Next(dst []byte) ([]byte, bool) {
	if f.index == f.count {
		return dst, false
	}
	n := min(f.part, len(f.rest))
	dst = binary.LittleEndian.AppendUint16(dst, f.seq)
	dst = append(dst, byte(f.index), byte(f.count-1))
	dst = append(dst, f.rest[:n]...)
	f.rest = f.rest[n:]
	f.index++
	return dst, true
}
