package peer

import (
	"fmt"

	"github.com/uplink-rpc/uplink/internal/codec/bitio"
	"github.com/uplink-rpc/uplink/schema"
)

// quake is the delta of Quake 3's entity state, after what ioquake3's MSG_WriteDeltaEntity and MSG_WriteBits do: the
// number of the last field that changed, then for each up to it a bit, changed or not; of a changed one a bit, zero or
// not, and its new value, not the difference. A number (a float there) that is within 13 bits goes as these, any other
// one whole, told apart by a bit; everything else has its full width. What is left of a width over whole bytes goes
// plain, each byte by a fixed Huffman code.
//
// Differences to the original, all in the peer's favor: a whole number has the 24 bits that quantization leaves, not 32;
// the Huffman code is trained on the trace, not on Quake; there is no entity number, and a frame that did not change
// has no bytes.
type quake struct {
	*layout
	code   *prefixCode
	counts []int // of bytes, while training
	w      bitio.Writer
	r      bitio.Reader
}

// smallBits is the size of a number that goes short.
const smallBits = 13

func newQuake(s *schema.Schema, _ Form, samples []Sample) (Peer, error) {
	q := &quake{layout: newLayout(s), counts: make([]int, 256)}
	if n := len(q.components) + q.blobs; n > 255 {
		return nil, fmt.Errorf("quake3: %d fields, want at most 255", n)
	}
	for i := range q.counts {
		q.counts[i] = 1
	}
	for _, s := range samples {
		q.delta(s.Base, s.Frame)
	}
	q.code, q.counts = newPrefixCode(huffmanLengths(q.counts)), nil
	return q, nil
}

func (q *quake) Append(dst []byte, base *schema.Frame, rows []schema.Frame) ([]byte, error) {
	q.w.Reset(dst)
	q.delta(base, &rows[0])
	return q.w.Bytes(), nil
}

func (q *quake) delta(base, cur *schema.Frame) {
	if base == nil {
		base = q.zero
	}
	last := q.last(base, cur)
	if last == 0 {
		return
	}
	q.write(uint32(last), 8)
	for i := range min(last, len(q.components)) {
		c := &q.components[i]
		if q.flag(cur.Ints[i] != base.Ints[i]) {
			q.value(c, cur.Ints[i])
		}
	}
	for i := range last - len(q.components) {
		if b := cur.Bytes[i]; q.flag(string(b) != string(base.Bytes[i])) {
			q.write(uint32(len(b)), 16)
			for _, c := range b {
				q.write(uint32(c), 8)
			}
		}
	}
}

// last is the number of the last field that changed, from 1 on.
func (q *quake) last(base, cur *schema.Frame) (last int) {
	for i := range cur.Ints {
		if cur.Ints[i] != base.Ints[i] {
			last = i + 1
		}
	}
	for i := range cur.Bytes {
		if string(cur.Bytes[i]) != string(base.Bytes[i]) {
			last = len(cur.Ints) + i + 1
		}
	}
	return last
}

// hasSmall says that a component has a short form.
func (c *component) hasSmall() bool { return c.signed && !c.xor && c.bits > smallBits }

func (q *quake) value(c *component, v int32) {
	if !q.flag(v != 0) {
		return
	}
	const bias = 1 << (smallBits - 1)
	if c.hasSmall() && !q.flag(v < -bias || v >= bias) {
		q.write(uint32(v+bias), smallBits)
		return
	}
	q.write(c.plain(v), c.bits)
}

func (q *quake) flag(b bool) bool {
	if b {
		q.write(1, 1)
	} else {
		q.write(0, 1)
	}
	return b
}

// write writes the low bits of v, or counts its bytes.
func (q *quake) write(v uint32, bits uint) {
	odd := bits & 7
	if q.code != nil {
		q.w.WriteBits(uint64(v), odd)
	}
	for v >>= odd; bits >= 8; bits -= 8 {
		if q.code == nil {
			q.counts[byte(v)]++
		} else {
			q.code.write(&q.w, int(byte(v)))
		}
		v >>= 8
	}
}

func (q *quake) read(bits uint) uint32 {
	at := bits & 7
	v := uint32(q.r.ReadBits(at))
	for ; at < bits; at += 8 {
		v |= uint32(q.code.read(&q.r)) << at
	}
	return v
}

func (q *quake) Decode(rows []schema.Frame, base *schema.Frame, payload []byte) error {
	if base == nil {
		base = q.zero
	}
	cur, last := &rows[0], 0
	cur.CopyFrom(base)
	if q.r.Reset(payload); len(payload) > 0 {
		last = int(q.read(8))
	}
	if last > len(q.components)+q.blobs {
		return malformed("quake3")
	}
	for i := range min(last, len(q.components)) {
		if q.read(1) != 0 {
			cur.Ints[i] = q.readValue(&q.components[i])
		}
	}
	for i := range last - len(q.components) {
		if q.read(1) == 0 {
			continue
		}
		size := int(q.read(16))
		if size > len(payload)*8 {
			return malformed("quake3")
		}
		cur.Bytes[i] = cur.Bytes[i][:0]
		for range size {
			cur.Bytes[i] = append(cur.Bytes[i], byte(q.read(8)))
		}
	}
	return q.r.Err()
}

func (q *quake) readValue(c *component) int32 {
	if q.read(1) == 0 {
		return 0
	}
	if c.hasSmall() && q.read(1) == 0 {
		return int32(q.read(smallBits)) - 1<<(smallBits-1)
	}
	return c.value(q.read(c.bits))
}
