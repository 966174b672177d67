package msgpack

import (
	"bytes"
	"fmt"
)

// check reports whether b is one well-formed value whose counts are at most what b contains. It
// returns the bodies of its extensions, in order.
func check(b []byte) (exts []span, err error) {
	c := checker{size: len(b)}
	rest, err := c.skip(b, 0)
	if err == nil && len(rest) != 0 {
		err = fmt.Errorf("%w: %d bytes follow the value", ErrMalformed, len(rest))
	}
	return c.exts, err
}

// span is a range of bytes that is not empty.
type span struct{ begin, end int }

type checker struct {
	size int
	exts []span
}

// skip returns the bytes after the first value of b.
func (c *checker) skip(b []byte, depth int) ([]byte, error) {
	h, err := parseHead(b)
	if err != nil {
		return nil, err
	}
	if h.size > len(b) || h.children > len(b)-h.size || depth > maxDepth {
		return nil, ErrMalformed
	}
	rest := b[h.size:]
	if h.ext > 0 {
		end := c.size - len(rest)
		c.exts = append(c.exts, span{end - h.ext, end})
	}
	for range h.children {
		if rest, err = c.skip(rest, depth+1); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// source provides a checked value to the decoder. If the decoder expects a map and finds an
// extension, it continues in the body of the extension, whose counts are unchecked. Decoders of
// extensions read a body as a whole, so source rejects single bytes of one.
type source struct {
	bytes.Reader
	exts []span
}

// ReadByte returns the first byte of a value.
func (s *source) ReadByte() (byte, error) {
	at := int(s.Size()) - s.Len()
	for len(s.exts) > 0 && s.exts[0].end <= at {
		s.exts = s.exts[1:]
	}
	if len(s.exts) > 0 && s.exts[0].begin <= at {
		return 0, fmt.Errorf("%w: an extension in place of a map", ErrMalformed)
	}
	return s.Reader.ReadByte()
}
