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

	"github.com/uplink-rpc/uplink/ringcache"
)

const (
	// HeaderSize is the size of a fragment's header in bytes.
	HeaderSize = 4
	// MaxCount is the maximum number of fragments of a message.
	MaxCount = 64
	// Window is the number of messages that are reassembled at the same time: the newest message of
	// which a fragment was received, and the Window-1 messages before it.
	Window = 4
)

var (
	// ErrTooLarge is returned for a message of more than MaxCount fragments.
	ErrTooLarge = errors.New("fragment: message too large")
	// ErrMalformed is returned for an invalid fragment.
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
	head, rest   []byte // parts of the message that were not appended yet
	seq          uint16
	part         int
	index, count int
}

// Split splits a message, which is head followed by rest, into parts of part bytes. Do not modify
// head and rest until the last fragment is appended. Split returns an error if the message has
// fewer than 2 or more than MaxCount parts, or if head is larger than a part. Send a message of one
// part without this package.
func (s *Splitter) Split(head, rest []byte, part int) (Fragments, error) {
	size := len(head) + len(rest)
	n := (size + part - 1) / part
	switch {
	case n > MaxCount:
		return Fragments{}, fmt.Errorf("%w: %d bytes, want at most %d", ErrTooLarge, size, MaxCount*part)
	case len(head) > part:
		return Fragments{}, fmt.Errorf("%w: a head of %d bytes, want at most %d", ErrTooLarge, len(head), part)
	case n < 2:
		return Fragments{}, fmt.Errorf("%w: %d bytes fit one part of %d", ErrMalformed, size, part)
	}
	f := Fragments{head: head, rest: rest, seq: s.next, part: part, count: n}
	s.next++
	return f, nil
}

// Count returns the number of fragments.
func (f *Fragments) Count() int { return f.count }

// Next appends the next fragment to dst. It returns false if there is none.
func (f *Fragments) Next(dst []byte) ([]byte, bool) {
	if f.index == f.count {
		return dst, false
	}
	n := min(f.part-len(f.head), len(f.rest))
	dst = binary.LittleEndian.AppendUint16(dst, f.seq)
	dst = append(dst, byte(f.index), byte(f.count-1))
	dst = append(append(dst, f.head...), f.rest[:n]...)
	f.head, f.rest = nil, f.rest[n:]
	f.index++
	return dst, true
}

// Assembler reassembles messages. It stores at most Window messages and discards older ones. Each
// buffer grows to the size of the largest message that it has contained. Not safe for concurrent
// use.
type Assembler struct {
	part, maxCount int
	any            bool   // a fragment was received
	newest         uint16 // number of the newest message
	messages       *ringcache.Ring[message]
	incomplete     uint64 // messages discarded before they were complete
}

type message struct {
	count    int
	size     int    // size of the message in bytes, valid after the last fragment was received
	received uint64 // bit i is set if fragment i was received
	buf      []byte
}

// NewAssembler returns an assembler for parts of part bytes and messages of at most maxCount
// fragments, 2 to MaxCount.
func NewAssembler(part, maxCount int) *Assembler {
	return &Assembler{part: part, maxCount: min(maxCount, MaxCount), messages: ringcache.New[message](Window)}
}

// Add adds a fragment. If the fragment completes its message, Add returns the message, which is
// valid until the next call. Any input is safe. If Add returns an error, the fragment has no
// effect. Once the buffers have grown, only errors allocate.
func (a *Assembler) Add(b []byte) ([]byte, error) {
	seq, index, count, err := a.parse(b)
	if err != nil {
		return nil, err
	}
	if a.any && a.newest-seq < 1<<15 && a.newest-seq >= Window {
		return nil, fmt.Errorf("%w: of message %d, where %d is the newest", ErrLate, seq, a.newest)
	}
	m := a.messages.Get(uint64(seq))
	switch {
	case m == nil:
		a.advance(seq)
		m = a.messages.Put(uint64(seq))
		m.reset(count, count*a.part)
	case m.count != count:
		return nil, fmt.Errorf("%w: %d fragments of message %d, before it were %d", ErrMalformed, count, seq, m.count)
	case m.received>>index&1 != 0:
		return nil, fmt.Errorf("%w: fragment %d of message %d", ErrDuplicate, index, seq)
	}
	part := b[HeaderSize:]
	copy(m.buf[index*a.part:], part)
	m.received |= 1 << index
	if index == count-1 {
		m.size = index*a.part + len(part)
	}
	if !m.complete() {
		return nil, nil
	}
	return m.buf[:m.size], nil
}

// parse parses the header of a fragment and checks the size of its part.
func (a *Assembler) parse(b []byte) (seq uint16, index, count int, err error) {
	if len(b) <= HeaderSize {
		return 0, 0, 0, fmt.Errorf("%w: %d bytes, want a header of %d and a part", ErrMalformed, len(b), HeaderSize)
	}
	seq, index, count = binary.LittleEndian.Uint16(b), int(b[2]), int(b[3])+1
	part := len(b) - HeaderSize
	switch {
	case count < 2 || count > a.maxCount:
		err = fmt.Errorf("%w: %d fragments, want 2 to %d", ErrMalformed, count, a.maxCount)
	case index >= count:
		err = fmt.Errorf("%w: fragment %d of %d", ErrMalformed, index, count)
	case part > a.part || part < a.part && index != count-1:
		err = fmt.Errorf("%w: a part of %d bytes, want %d", ErrMalformed, part, a.part)
	}
	return seq, index, count, err
}

// advance discards the messages that are older than the window of message seq.
func (a *Assembler) advance(seq uint16) {
	if !a.any || seq-a.newest < 1<<15 {
		a.any, a.newest = true, seq
	}
	for n, m := range a.messages.All() {
		if a.newest-uint16(n) >= Window {
			a.discard(n, m)
		}
	}
}

func (a *Assembler) discard(seq uint64, m *message) {
	if !m.complete() {
		a.incomplete++
	}
	a.messages.Delete(seq)
}

// Reset discards all messages, so that another sender can follow. It does not change the count of
// Incomplete.
func (a *Assembler) Reset() {
	for n, m := range a.messages.All() {
		a.discard(n, m)
	}
	a.any = false
}

// Incomplete returns the number of messages that were discarded before all fragments were received.
func (a *Assembler) Incomplete() uint64 { return a.incomplete }

func (m *message) reset(count, size int) {
	m.count, m.received, m.size = count, 0, 0
	if cap(m.buf) < size {
		m.buf = make([]byte, size)
	}
	m.buf = m.buf[:cap(m.buf)]
}

func (m *message) complete() bool { return m.received == 1<<m.count-1 }
