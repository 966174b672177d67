package fragment

import (
	"encoding/binary"
	"fmt"

	"github.com/uplink-rpc/uplink/ringcache"
)

// Assembler reassembles messages. It stores at most Window of them, each in a buffer of the size of
// the largest message that the buffer has had, and discards older ones. Not safe for concurrent
// use.
type Assembler struct {
	part, maxCount int
	any            bool   // a fragment was received
	newest         uint16 // message
	messages       *ringcache.Ring[message]
	incomplete     uint64
}

// message is a message being reassembled, or a complete one.
type message struct {
	count    int
	size     int    // in bytes, once the last fragment was received
	received uint64 // bit i: fragment i
	buf      []byte
}

// NewAssembler returns an assembler for parts of part bytes and messages of at most maxCount
// fragments, 2 to MaxCount.
func NewAssembler(part, maxCount int) *Assembler {
	return &Assembler{part: part, maxCount: min(maxCount, MaxCount), messages: ringcache.New[message](Window)}
}

// Add adds a fragment. If it completes its message, Add returns the message, which is valid until
// the next call. Any input is safe; a fragment that is refused with an error of this package has no
// effect. Once warm, only errors allocate.
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

// advance discards the messages that are older than the window of a new message.
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

// Reset discards all messages, for another sender. Buffers and the count of Incomplete stay.
func (a *Assembler) Reset() {
	for n, m := range a.messages.All() {
		a.discard(n, m)
	}
	a.any = false
}

// Incomplete returns the number of messages that were discarded before all fragments were received.
func (a *Assembler) Incomplete() uint64 { return a.incomplete }

// reset prepares a message of so many fragments, of at most size bytes.
func (m *message) reset(count, size int) {
	m.count, m.received, m.size = count, 0, 0
	if cap(m.buf) < size {
		m.buf = make([]byte, size)
	}
	m.buf = m.buf[:cap(m.buf)]
}

func (m *message) complete() bool { return m.received == 1<<m.count-1 }
