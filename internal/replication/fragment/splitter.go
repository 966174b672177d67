package fragment

import (
	"encoding/binary"
	"fmt"
)

// Splitter cuts messages into fragments. The zero value is ready. It is not safe for concurrent use.
type Splitter struct{ next uint16 }

// Fragments are those of one message.
type Fragments struct {
	rest       []byte
	seq        uint16
	part       int
	at, number int
}

// Split begins to cut a message into parts of that many bytes; the message must stay as it is until the last fragment
// was taken. One that does not take 2 to MaxCount fragments is an error: a smaller one is to be sent as it is.
func (s *Splitter) Split(message []byte, part int) (Fragments, error) {
	n := (len(message) + part - 1) / part
	switch {
	case n > MaxCount:
		return Fragments{}, fmt.Errorf("%w: %d bytes, want at most %d", ErrTooLarge, len(message), MaxCount*part)
	case n < 2:
		return Fragments{}, fmt.Errorf("%w: %d bytes fit one part of %d", ErrMalformed, len(message), part)
	}
	f := Fragments{rest: message, seq: s.next, part: part, number: n}
	s.next++
	return f, nil
}

// Count is how many fragments there are in all.
func (f *Fragments) Count() int { return f.number }

// Next appends the next fragment to dst, or says false after the last.
func (f *Fragments) Next(dst []byte) ([]byte, bool) {
	if f.at == f.number {
		return dst, false
	}
	n := min(f.part, len(f.rest))
	dst = binary.LittleEndian.AppendUint16(dst, f.seq)
	dst = append(dst, byte(f.at), byte(f.number-1))
	dst = append(dst, f.rest[:n]...)
	f.rest = f.rest[n:]
	f.at++
	return dst, true
}
