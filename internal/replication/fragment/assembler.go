package fragment

import (
	"encoding/binary"
	"fmt"
)

// Assembler puts messages together. It holds at most Window of them, each of the memory of the largest that its place
// had so far, and gives up those that are older. It is not safe for concurrent use.
type Assembler struct {
	part, most int
	began      bool
	newest     uint16
	places     [Window]place
	incomplete uint64
}

// place is one message in the making.
type place struct {
	used  bool
	seq   uint16
	count int
	size  int // of the message, as soon as the last fragment is there
	have  uint64
	buf   []byte
}

// NewAssembler makes one for fragments with parts of that many bytes, and messages of at most that many fragments, 2 to
// MaxCount.
func NewAssembler(part, most int) *Assembler {
	return &Assembler{part: part, most: min(most, MaxCount)}
}

// Add takes a fragment. If it completes its message, that is returned, and stays valid until the next call. What is not
// taken is an error of this package and changes nothing. Any input is safe. Once warm nothing is allocated but errors.
func (a *Assembler) Add(b []byte) (message []byte, err error) {
	seq, index, count, err := a.parse(b)
	if err != nil {
		return nil, err
	}
	if a.began && a.newest-seq < 1<<15 && a.newest-seq >= Window {
		return nil, fmt.Errorf("%w: of message %d, where %d is the newest", ErrLate, seq, a.newest)
	}
	p := &a.places[seq%Window]
	switch {
	case !p.used || p.seq != seq:
		a.advance(seq)
		p.begin(seq, count, a.part)
	case p.count != count:
		return nil, fmt.Errorf("%w: %d fragments of message %d, before it were %d", ErrMalformed, count, seq, p.count)
	case p.have>>index&1 != 0:
		return nil, fmt.Errorf("%w: fragment %d of message %d", ErrDuplicate, index, seq)
	}
	p.add(index, b[HeaderSize:], a.part)
	if !p.whole() {
		return nil, nil
	}
	return p.buf[:p.size], nil
}

// parse reads a fragment and checks it.
func (a *Assembler) parse(b []byte) (seq uint16, index, count int, err error) {
	if len(b) <= HeaderSize {
		return 0, 0, 0, fmt.Errorf("%w: %d bytes, want a header of %d and a part", ErrMalformed, len(b), HeaderSize)
	}
	seq, index, count = binary.LittleEndian.Uint16(b), int(b[2]), int(b[3])+1
	part := len(b) - HeaderSize
	switch {
	case count < 2 || count > a.most:
		err = fmt.Errorf("%w: %d fragments, want 2 to %d", ErrMalformed, count, a.most)
	case index >= count:
		err = fmt.Errorf("%w: fragment %d of %d", ErrMalformed, index, count)
	case part > a.part || part < a.part && index != count-1:
		err = fmt.Errorf("%w: a part of %d bytes, want %d", ErrMalformed, part, a.part)
	}
	return seq, index, count, err
}

// advance gives up what is older than the window once a message is in it.
func (a *Assembler) advance(seq uint16) {
	if !a.began || seq-a.newest < 1<<15 {
		a.began, a.newest = true, seq
	}
	for i := range a.places {
		if p := &a.places[i]; p.used && a.newest-p.seq >= Window {
			a.giveUp(p)
		}
	}
}

func (a *Assembler) giveUp(p *place) {
	if p.used && !p.whole() {
		a.incomplete++
	}
	p.used = false
}

// Reset forgets all messages, as for another sender. Memory and the count stay.
func (a *Assembler) Reset() {
	for i := range a.places {
		a.giveUp(&a.places[i])
	}
	a.began = false
}

// Incomplete is how many messages were given up of which some fragments had come.
func (a *Assembler) Incomplete() uint64 { return a.incomplete }

func (p *place) begin(seq uint16, count, part int) {
	p.used, p.seq, p.count, p.have, p.size = true, seq, count, 0, 0
	if n := count * part; cap(p.buf) < n {
		p.buf = make([]byte, n)
	}
	p.buf = p.buf[:cap(p.buf)]
}

func (p *place) add(index int, part []byte, size int) {
	copy(p.buf[index*size:], part)
	p.have |= 1 << index
	if index == p.count-1 {
		p.size = index*size + len(part)
	}
}

func (p *place) whole() bool { return p.have == 1<<p.count-1 }
