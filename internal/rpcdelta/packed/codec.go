package packed

import (
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/codec/bitio"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/rle"
)

// Codec codes single frames. It keeps no state between frames. Not safe for concurrent use.
type Codec struct {
	s      *Format
	w      bitio.Writer
	r      bitio.Reader
	diff   []int64 // one group
	width  uint32  // width of each integer of diff, in bits
	binary []byte  // the binary part before run-length coding
	code   []byte  // binary part after run-length coding; used by Measure
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
	v, b := p.numbers(cur, base)
	switch p.Class {
	case schema.ClassNumber:
		return c.writeGroup(p, v, b)
	case schema.ClassAngle:
		if b != nil {
			return c.writeGroup(p, v, b)
		}
		for _, x := range v {
			c.w.WriteBits(bit(x != 0), 1)
			c.w.WriteBits(uint64(x), p.Bits&uint(mask(x)))
		}
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
	default:
	}
	return true
}

// writeGroup reports false if the group cannot hold a difference.
func (c *Codec) writeGroup(p *plan, v, base []int32) bool {
	diff := c.diff[:len(v)]
	header := groupHeader(p.difference(diff, v, base))
	if header >= p.max {
		return false
	}
	c.w.WriteTruncated(header, p.max)
	c.width = header + 2
	for _, d := range diff {
		c.w.WriteBits(uint64(d+1<<(header+1)), uint(header+2))
	}
	return true
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

func uvarintLen(n int) int { return (bits.Len(uint(n|1)) + 6) / 7 }

// xor XORs dst with b up to the length of the shorter one.
func xor(dst, b []byte) {
	for i := range min(len(dst), len(b)) {
		dst[i] ^= b[i]
	}
}
