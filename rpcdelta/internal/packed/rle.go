package packed

import (
	"encoding/binary"

	"github.com/uplink-rpc/uplink/internal/codec/bitio"
	"github.com/uplink-rpc/uplink/rle"
	"github.com/uplink-rpc/uplink/schema"
)

// Codec codes single frames. It keeps no state between frames. Not safe for concurrent use.
type Codec struct {
	s      *Format
	w      bitio.Writer
	r      bitio.Reader
	diff   []int64 // one group
	binary []byte  // the binary part before run-length coding
	code   []byte  // after run-length coding; used by Measure
}

// NewCodec returns a codec for frames of the format.
func NewCodec(s *Format) *Codec {
	widest := 3
	for i := range s.plans {
		widest = max(widest, s.plans[i].N)
	}
	return &Codec{s: s, diff: make([]int64, widest), binary: make([]byte, 0, s.BinaryBytes())}
}

// Append appends cur, coded as the difference from base unless base is nil. It reports false if a
// difference does not fit.
func (c *Codec) Append(dst []byte, cur, base *schema.Frame) (out []byte, ok bool) {
	c.w.Reset(dst)
	for i := range c.s.plans {
		if !c.writeNumbers(&c.s.plans[i], cur, base) {
			return dst, false
		}
	}
	c.binary = c.s.appendBinary(c.binary[:0], cur, base)
	return rle.AppendEncode(c.w.Bytes(), c.binary), true
}

func (c *Codec) writeNumbers(p *plan, cur, base *schema.Frame) bool {
	v := cur.Ints[p.At : p.At+p.N]
	var b []int32
	if base != nil {
		b = base.Ints[p.At : p.At+p.N]
	}
	switch p.Class {
	case schema.ClassNumber:
		return c.writeGroup(p, v, b)
	case schema.ClassAngle:
		if b == nil {
			for _, x := range v {
				writeAngle(&c.w, x, p.Bits)
			}
			return true
		}
		return c.writeGroup(p, v, b)
	case schema.ClassQuat:
		if b != nil {
			same := v[0] == b[0]
			c.w.WriteBits(bit(same), 1)
			if same {
				return c.writeGroup(p, v[1:], b[1:])
			}
		}
		c.w.WriteBits(uint64(v[0]), 2)
		for _, x := range v[1:] {
			c.w.WriteBits(uint64(x), p.Bits)
		}
	case schema.ClassInteger, schema.ClassBytes:
	}
	return true
}

func (c *Codec) writeGroup(p *plan, v, base []int32) bool {
	diff := c.diff[:len(v)]
	m := p.difference(diff, v, base)
	header, ok := groupHeader(m, p.max)
	if ok {
		writeGroup(&c.w, diff, header, p.max)
	}
	return ok
}

// difference sets diff to v-base, or to v if base is nil, and returns the largest magnitude.
func (p *plan) difference(diff []int64, v, base []int32) (m uint64) {
	for k, x := range v {
		d := int64(x)
		if base != nil {
			d -= int64(base[k])
			if p.Class == schema.ClassAngle {
				d = int64(int32(d)<<(32-p.Bits)) >> (32 - p.Bits) // in the range of half a turn
			}
		}
		diff[k] = d
		m = max(m, magnitude(d))
	}
	return m
}

func writeAngle(w *bitio.Writer, x int32, bits uint) {
	w.WriteBits(bit(x != 0), 1)
	if x != 0 {
		w.WriteBits(uint64(x), bits)
	}
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// KeyframeBytes returns the size of a frame that is coded without a baseline, in bytes.
func (c *Codec) KeyframeBytes(cur *schema.Frame) int {
	c.binary = c.s.appendBinary(c.binary[:0], cur, nil)
	n := 0
	for i := range c.s.plans {
		n += c.s.plans[i].numberBits(cur)
	}
	return (n+7)/8 + rle.EncodedLen(c.binary)
}

func uvarintLen(n int) int {
	size := 1
	for ; n >= 1<<7; n >>= 7 {
		size++
	}
	return size
}

// appendBinary appends the integers and byte strings of cur, XORed with those of base unless base
// is nil.
func (s *Format) appendBinary(dst []byte, cur, base *schema.Frame) []byte {
	for i := range s.plans {
		switch p := &s.plans[i]; p.Class {
		case schema.ClassInteger:
			for k := range p.N {
				v := uint32(cur.Ints[p.At+k])
				if base != nil {
					v ^= uint32(base.Ints[p.At+k])
				}
				for range p.componentBytes(k) {
					dst = append(dst, byte(v))
					v >>= 8
				}
			}
		case schema.ClassBytes:
			b := cur.Bytes[p.Blob]
			if p.LengthBytes() > 0 {
				dst = binary.AppendUvarint(dst, uint64(len(b)))
			}
			at := len(dst)
			dst = append(dst, b...)
			if base != nil {
				xor(dst[at:], base.Bytes[p.Blob])
			}
		case schema.ClassNumber, schema.ClassAngle, schema.ClassQuat:
		}
	}
	return dst
}

// xor XORs dst with b up to the length of the shorter one.
func xor(dst, b []byte) {
	for i := range min(len(dst), len(b)) {
		dst[i] ^= b[i]
	}
}

// componentBytes returns the size of component k of an integer field, in bytes.
func (p *plan) componentBytes(k int) int {
	if p.Width <= 32 {
		return p.ValueBytes()
	}
	if k%2 == 0 {
		return 4
	}
	return p.ValueBytes() - 4
}
