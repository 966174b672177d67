package msgpack

import (
	"bytes"
	"fmt"
)

// check says whether b is one well-formed value whose counts do not promise
// more than b holds, and where the bodies of its extensions lie, in order.
func check(b []byte) (exts []span, err error) {
	c := checker{size: len(b)}
	rest, err := c.skip(b, 0)
	if err == nil && len(rest) != 0 {
		err = fmt.Errorf("%w: %d bytes follow the value", ErrMalformed, len(rest))
	}
	return c.exts, err
}

// span is a stretch of bytes that is not empty.
type span struct{ begin, end int }

type checker struct {
	size int
	exts []span
}

// skip gives what follows b's first value.
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

// source is a checked value for the decoder. Where a map is wanted and an extension
// comes, the decoder goes on in the extension's body, which may promise what it
// likes. What is there for extensions reads a body as a whole, so that a byte of it
// by itself is refused.
type source struct {
	bytes.Reader
	exts []span
}

// ReadByte is called for the first bytes of values.
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
