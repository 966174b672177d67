package peer

import (
	"cmp"
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/uplink-rpc/uplink/schema"
)

// Form is a layout of differences in bytes.
type Form string

// The forms of differences. Byte strings follow the numbers: a length, and the bytes XORed with
// those of the baseline.
const (
	// Varint has variable-length integers with the sign in the lowest bit.
	Varint Form = "varint"
	// Bytes has all bytes of each component, lowest first.
	Bytes Form = "bytes"
	// Planes has the lowest bytes of all components, then their next bytes.
	Planes Form = "planes"
)

// Forms returns all forms of differences.
func Forms() []Form { return []Form{Varint, Bytes, Planes} }

// record codes the differences of frames in a form.
type record struct {
	*layout
	form Form
}

// append appends the differences of cur from base.
func (r *record) append(dst []byte, base, cur *schema.Frame) []byte {
	base = cmp.Or(base, r.zero)
	switch r.form {
	case Bytes:
		for i := range r.components {
			c := &r.components[i]
			d := c.difference(cur, base)
			for k := uint(0); k < c.bits; k += 8 {
				dst = append(dst, byte(d>>k))
			}
		}
	case Planes:
		for k := uint(0); k < 32; k += 8 {
			for i := range r.components {
				if c := &r.components[i]; k < c.bits {
					dst = append(dst, byte(c.difference(cur, base)>>k))
				}
			}
		}
	default:
		for i := range r.components {
			c := &r.components[i]
			dst = binary.AppendUvarint(dst, c.fold(c.difference(cur, base)))
		}
	}
	return r.appendBlobs(dst, base, cur)
}

func (r *record) appendBlobs(dst []byte, base, cur *schema.Frame) []byte {
	for i, b := range cur.Bytes {
		dst = binary.AppendUvarint(dst, uint64(len(b)))
		for k, c := range b {
			if k < len(base.Bytes[i]) {
				c ^= base.Bytes[i][k]
			}
			dst = append(dst, c)
		}
	}
	return dst
}

// parse parses differences into cur. It reports whether they are well-formed.
func (r *record) parse(cur, base *schema.Frame, src []byte) bool {
	base = cmp.Or(base, r.zero)
	switch r.form {
	case Bytes:
		for i := range r.components {
			c, d := &r.components[i], uint32(0)
			for k := uint(0); k < c.bits; k += 8 {
				if len(src) == 0 {
					return false
				}
				d |= uint32(src[0]) << k
				src = src[1:]
			}
			c.restore(cur, base, int32(d))
		}
	case Planes:
		var ok bool
		if src, ok = r.parsePlanes(cur, base, src); !ok {
			return false
		}
	default:
		for i := range r.components {
			c := &r.components[i]
			v, n := binary.Uvarint(src)
			if n <= 0 {
				return false
			}
			src = src[n:]
			c.restore(cur, base, c.unfold(v))
		}
	}
	return r.parseBlobs(cur, base, src)
}

// parsePlanes collects the bytes of the differences in cur, then restores the components.
func (r *record) parsePlanes(cur, base *schema.Frame, src []byte) (rest []byte, ok bool) {
	clear(cur.Ints)
	for k := uint(0); k < 32; k += 8 {
		for i := range r.components {
			if k >= r.components[i].bits {
				continue
			}
			if len(src) == 0 {
				return src, false
			}
			cur.Ints[i] |= int32(src[0]) << k
			src = src[1:]
		}
	}
	for i := range r.components {
		r.components[i].restore(cur, base, cur.Ints[i])
	}
	return src, true
}

func (r *record) parseBlobs(cur, base *schema.Frame, src []byte) bool {
	for i := range r.fields {
		f := &r.fields[i]
		if f.shape != blob {
			continue
		}
		size, n := binary.Uvarint(src)
		if n <= 0 || size > uint64(f.most) || size > uint64(len(src)-n) {
			return false
		}
		b := append(cur.Bytes[f.blob][:0], src[n:n+int(size)]...)
		for k := range min(len(b), len(base.Bytes[f.blob])) {
			b[k] ^= base.Bytes[f.blob][k]
		}
		cur.Bytes[f.blob], src = b, src[n+int(size):]
	}
	return len(src) == 0
}

// fold maps a difference to an unsigned number that is small if the difference is.
func (c *component) fold(d int32) uint64 {
	if c.xor {
		return uint64(uint32(d))
	}
	return protowire.EncodeZigZag(int64(d))
}

func (c *component) unfold(v uint64) int32 {
	if c.xor {
		return int32(uint32(v))
	}
	return int32(protowire.DecodeZigZag(v))
}
