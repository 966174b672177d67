// Package msgpack encodes values as canonical msgpack. It also validates msgpack before decoding,
// because the decoder trusts counts.
package msgpack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"

	lib "github.com/vmihailenco/msgpack/v5"
)

const maxDepth = 32

// ErrMalformed reports that bytes are not one well-formed msgpack value.
var ErrMalformed = errors.New("malformed msgpack")

// AppendMarshal appends v as msgpack with the entries of every map sorted by their encoded keys, so
// that equal values have equal encodings.
func AppendMarshal(dst []byte, v any) ([]byte, error) {
	b, err := lib.Marshal(v)
	if err != nil {
		return dst, err
	}
	out, rest, err := appendSorted(dst, b, 0)
	if err == nil && len(rest) != 0 {
		err = ErrMalformed
	}
	if err != nil {
		return dst, err
	}
	return out, nil
}

// Unmarshal decodes all of b into v, a pointer. It rejects counts that exceed the size of b before
// it allocates memory for them. A value that does not fit the type of v is an error, even where the
// decoder would panic.
func Unmarshal(b []byte, v any) (err error) {
	exts, err := check(b, reflect.TypeOf(v))
	if err != nil {
		return err
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrMalformed, r)
		}
	}()
	d := lib.GetDecoder()
	d.Reset(&source{Reader: *bytes.NewReader(b), exts: exts})
	err = d.Decode(v)
	lib.PutDecoder(d)
	return err
}

// head describes the first bytes of a value: their size, and the number of child values that
// follow.
type head struct {
	size     int // size in bytes, without children
	children int
	isMap    bool
	ext      int // number of bytes at the end of size that are the body of an extension
}

func parseHead(b []byte) (head, error) {
	if len(b) == 0 {
		return head{}, ErrMalformed
	}
	c := b[0]
	switch {
	case c <= 0x7f || c >= 0xe0: // small integers
		return head{size: 1}, nil
	case c <= 0x8f:
		return head{size: 1, children: 2 * int(c&0x0f), isMap: true}, nil
	case c <= 0x9f:
		return head{size: 1, children: int(c & 0x0f)}, nil
	case c <= 0xbf:
		return head{size: 1 + int(c&0x1f)}, nil
	}
	f := forms[c-0xc0]
	if f.count == 0 {
		if f.size == 0 {
			return head{}, fmt.Errorf("%w: byte %#x", ErrMalformed, c)
		}
		return head{size: f.size, ext: f.ext}, nil
	}
	if len(b) < 1+f.count {
		return head{}, ErrMalformed
	}
	var wide [8]byte
	copy(wide[8-f.count:], b[1:1+f.count])
	n := binary.BigEndian.Uint64(wide[:])
	if n > uint64(len(b)) { // every byte, and every child, takes at least one
		return head{}, fmt.Errorf("%w: a count of %d in %d bytes", ErrMalformed, n, len(b))
	}
	switch f.holds {
	case holdsPairs:
		return head{size: 1 + f.count, children: 2 * int(n), isMap: true}, nil
	case holdsValues:
		return head{size: 1 + f.count, children: int(n)}, nil
	case holdsExt:
		return head{size: 1 + f.count + 1 + int(n), ext: int(n)}, nil
	case holdsBytes:
	}
	return head{size: 1 + f.count + int(n)}, nil
}

type holds uint8

const (
	holdsBytes holds = iota
	holdsExt         // a type byte and data bytes
	holdsValues
	holdsPairs
)

// forms describes the values that start with 0xc0 to 0xdf. It holds either the fixed size and the
// size of an extension's body, or the size of the count and the kind of the counted items.
var forms = [32]struct {
	size, count int
	holds       holds
	ext         int
}{
	0x00: {size: 1},                  // nil; 0xc1 is never used
	0x02: {size: 1}, 0x03: {size: 1}, // false, true
	0x04: {count: 1}, 0x05: {count: 2}, 0x06: {count: 4}, // bin
	0x07: {count: 1, holds: holdsExt}, 0x08: {count: 2, holds: holdsExt}, 0x09: {count: 4, holds: holdsExt}, // ext
	0x0a: {size: 5}, 0x0b: {size: 9}, // floats
	0x0c: {size: 2}, 0x0d: {size: 3}, 0x0e: {size: 5}, 0x0f: {size: 9}, // uints
	0x10: {size: 2}, 0x11: {size: 3}, 0x12: {size: 5}, 0x13: {size: 9}, // ints
	0x14: {size: 3, ext: 1}, 0x15: {size: 4, ext: 2}, 0x16: {size: 6, ext: 4}, 0x17: {size: 10, ext: 8}, 0x18: {size: 18, ext: 16}, // fixext
	0x19: {count: 1}, 0x1a: {count: 2}, 0x1b: {count: 4}, // str
	0x1c: {count: 2, holds: holdsValues}, 0x1d: {count: 4, holds: holdsValues}, // array
	0x1e: {count: 2, holds: holdsPairs}, 0x1f: {count: 4, holds: holdsPairs}, // map
}

// appendSorted appends the first value of b with sorted maps and returns the bytes that follow it.
func appendSorted(dst, b []byte, depth int) (out, rest []byte, err error) {
	h, err := parseHead(b)
	if err != nil {
		return dst, nil, err
	}
	if h.size > len(b) || depth > maxDepth {
		return dst, nil, ErrMalformed
	}
	dst, rest = append(dst, b[:h.size]...), b[h.size:]
	if !h.isMap {
		for range h.children {
			if dst, rest, err = appendSorted(dst, rest, depth+1); err != nil {
				return dst, nil, err
			}
		}
		return dst, rest, nil
	}
	type entry struct{ key, value []byte }
	var entries []entry
	for range h.children / 2 {
		var e entry
		if e.key, rest, err = appendSorted(nil, rest, depth+1); err != nil {
			return dst, nil, err
		}
		if e.value, rest, err = appendSorted(nil, rest, depth+1); err != nil {
			return dst, nil, err
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(x, y entry) int { return bytes.Compare(x.key, y.key) })
	for _, e := range entries {
		dst = append(append(dst, e.key...), e.value...)
	}
	return dst, rest, nil
}

// check reports whether b is one well-formed value whose counts do not exceed the size of b.
// Integers must be in the range of the corresponding type within t, because the decoder would
// truncate them. It returns the bodies of the extensions, in order.
func check(b []byte, t reflect.Type) (exts []span, err error) {
	c := checker{size: len(b)}
	rest, err := c.skip(b, 0, t)
	if err == nil && len(rest) != 0 {
		err = fmt.Errorf("%w: %d bytes follow the value", ErrMalformed, len(rest))
	}
	return c.exts, err
}

type span struct{ begin, end int }

type checker struct {
	size int
	exts []span
}

// skip checks a value and returns the bytes that follow it. The value is decoded as type t, which
// may be nil.
func (c *checker) skip(b []byte, depth int, t reflect.Type) ([]byte, error) {
	h, err := parseHead(b)
	if err != nil {
		return nil, err
	}
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if h.size > len(b) || h.children > len(b)-h.size || depth > maxDepth {
		return nil, ErrMalformed
	}
	rest := b[h.size:]
	if h.ext > 0 {
		end := c.size - len(rest)
		c.exts = append(c.exts, span{end - h.ext, end})
	}
	if h.children == 0 && !fits(b[:h.size], t) {
		return nil, fmt.Errorf("%w: an integer out of the range of %v", ErrMalformed, t)
	}
	for i := range h.children {
		if rest, err = c.skip(rest, depth+1, elementOf(t, i, h.isMap)); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// elementOf returns the type as which the decoder decodes element i of an array, or nil if it is
// unknown.
func elementOf(t reflect.Type, i int, isMap bool) reflect.Type {
	switch {
	case t == nil || isMap:
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
		return t.Elem()
	case t.Kind() == reflect.Struct:
		for k := range t.NumField() {
			if f := t.Field(k); !f.IsExported() {
				continue
			} else if i == 0 {
				return f.Type
			}
			i--
		}
	}
	return nil
}

// fits reports whether an integer is in the range of type t. It is true for other values and types.
func fits(b []byte, t reflect.Type) bool {
	if t == nil {
		return true
	}
	v, negative, ok := integer(b)
	switch {
	case !ok:
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64:
		return (negative || v <= math.MaxInt64) && !t.OverflowInt(int64(v))
	case t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uint64:
		return !negative && !t.OverflowUint(v)
	}
	return true
}

// integer returns the 64 bits of an integer in two's complement, and reports whether it is one.
func integer(b []byte) (v uint64, negative, ok bool) {
	switch c := b[0]; {
	case c <= 0x7f:
		return uint64(c), false, true
	case c >= 0xe0:
		return uint64(int64(int8(c))), true, true
	case c < 0xcc || c > 0xd3:
		return 0, false, false
	}
	for _, c := range b[1:] {
		v = v<<8 | uint64(c)
	}
	if b[0] >= 0xd0 {
		shift := 64 - 8*(len(b)-1)
		signed := int64(v<<shift) >> shift
		return uint64(signed), signed < 0, true
	}
	return v, false, true
}

// source provides a checked value to the decoder. If the decoder expects a map and finds an
// extension, it continues in the body of the extension, whose counts are unchecked. A decoder of
// extensions reads the whole body in one call, so source rejects reads of single bytes of a body.
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
