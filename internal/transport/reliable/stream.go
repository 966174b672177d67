package reliable

import "slices"

// The data of consecutive segments form a stream of messages. Each message is preceded by its size
// minus one, an integer of 7 or 14 bits. The first byte contains the low 7 bits; its highest bit is
// set if another byte follows.

// sizeOf returns the size in bytes of the size prefix of a message of n bytes.
func sizeOf(n int) int {
	if n <= 1<<7 {
		return 1
	}
	return 2
}

// appendSize appends the size prefix of a message of n bytes, 1 to [MaxMessage].
func appendSize(b []byte, n int) []byte {
	if sizeOf(n) == 1 {
		return append(b, byte(n-1))
	}
	return append(b, byte(n-1)|0x80, byte((n-1)>>7))
}

// AppendMessage appends a message of 1 to [MaxMessage] bytes with its size prefix.
func AppendMessage(b, message []byte) []byte {
	return append(appendSize(b, len(message)), message...)
}

// parseSize parses the size prefix at the start of b. n is the size of the message, size the size
// of the prefix in bytes, or 0 if b ends within it. ok reports whether the prefix is valid.
func parseSize(b []byte) (n, size int, ok bool) {
	switch {
	case len(b) == 0:
		return 0, 0, true
	case b[0] < 0x80:
		return int(b[0]) + 1, 1, true
	case len(b) == 1:
		return 0, 0, true
	default:
		return int(b[0]&0x7f) + int(b[1])<<7 + 1, 2, b[1] != 0 && b[1] < 0x80
	}
}

// inbox contains the received bytes of the stream that were not delivered yet: at most a message
// and a segment.
type inbox struct {
	b    []byte
	head int // offset of the next message in b
}

func (in *inbox) empty() bool { return in.head == len(in.b) }

// extend returns room for n more bytes of the stream, which the caller fills.
func (in *inbox) extend(n int) []byte {
	in.b, in.head = slices.Delete(in.b, 0, in.head), 0
	in.b = slices.Grow(in.b, n)[:len(in.b)+n]
	return in.b[len(in.b)-n:]
}

// next returns the next message, valid until the next call of extend. It returns nil if the message
// is not complete, and [ErrMalformed] if its size is invalid.
func (in *inbox) next() ([]byte, error) {
	n, size, ok := parseSize(in.b[in.head:])
	if !ok {
		return nil, ErrMalformed
	}
	start := in.head + size
	if size == 0 || len(in.b)-start < n {
		return nil, nil
	}
	in.head = start + n
	return in.b[start:in.head], nil
}
