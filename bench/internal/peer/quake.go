package peer

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/uplink-rpc/uplink/schema"
)

// quake is the delta coding of entity states in Quake 3, after MSG_WriteDeltaEntity and
// MSG_WriteBits of ioquake3. The index of the last changed field is followed by one bit for each
// field up to it: changed or not. A changed field has a bit, zero or not, and its new value.
// Numbers (floats in Quake) within 13 bits have a short form, marked by a bit; all others have
// their full width. The bits of a value that exceed whole bytes are not compressed; each byte has a
// fixed Huffman code.
//
// Differences to the original, all in favor of the peer: a number has the 24 bits of its
// quantization, not 32; the Huffman code is trained on the trace, not on Quake; there is no entity
// number; and an unchanged frame has no bytes.
type quake struct {
	*layout
	coder
	code   *prefixCode
	counts []int // of bytes, during training
}

// smallBits is the size of the short form of numbers.
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
	q.pack(dst)
	q.delta(base, &rows[0])
	return q.w.Bytes(), nil
}

func (q *quake) Decode(rows []schema.Frame, base *schema.Frame, payload []byte) error {
	if base == nil {
		base = q.zero
	}
	rows[0].CopyFrom(base)
	if len(payload) == 0 {
		return nil
	}
	q.unpack(payload)
	if !q.delta(base, &rows[0]) {
		return malformed("quake3")
	}
	return q.r.Err()
}

// delta codes cur, or counts its bytes during training. It reports whether the payload is
// well-formed.
func (q *quake) delta(base, cur *schema.Frame) bool {
	if base == nil {
		base = q.zero
	}
	last := 0
	if !q.reading {
		if last = lastChange(base, cur); last == 0 {
			return true
		}
	}
	if last = int(q.number(uint32(last), 8)); last > len(q.components)+q.blobs {
		return false
	}
	for i := range min(last, len(q.components)) {
		if q.flag(cur.Ints[i] != base.Ints[i]) {
			cur.Ints[i] = q.value(&q.components[i], cur.Ints[i])
		}
	}
	for i := range last - len(q.components) {
		b := &cur.Bytes[i]
		if !q.flag(string(*b) != string(base.Bytes[i])) {
			continue
		}
		size := int(q.number(uint32(len(*b)), 16))
		if q.reading && size > q.r.Len() {
			return false
		}
		*b = q.resize(*b, size)
		for k := range *b {
			(*b)[k] = byte(q.number(uint32((*b)[k]), 8))
		}
	}
	return true
}

// resize returns b with that size when it unpacks.
func (c *coder) resize(b []byte, size int) []byte {
	if !c.reading {
		return b
	}
	return append(b[:0], make([]byte, size)...)
}

// lastChange returns the index of the last changed field, from 1 on, or 0.
func lastChange(base, cur *schema.Frame) (last int) {
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

// value codes a changed component.
func (q *quake) value(c *component, v int32) int32 {
	if !q.flag(v != 0) {
		return 0
	}
	const bias = 1 << (smallBits - 1)
	hasSmall := c.signed && !c.xor && c.bits > smallBits
	if hasSmall && !q.flag(v < -bias || v >= bias) {
		return int32(q.number(uint32(v+bias), smallBits)) - bias
	}
	return c.value(q.number(c.plain(v), c.bits))
}

func (q *quake) flag(b bool) bool {
	v := uint32(0)
	if b {
		v = 1
	}
	return q.number(v, 1) != 0
}

// number codes the low n bits of v, or counts its bytes during training.
func (q *quake) number(v uint32, n uint) uint32 {
	at := n & 7
	if q.code != nil {
		v = uint32(q.bits(uint64(v), at))
	}
	for ; at < n; at += 8 {
		if q.code == nil {
			q.counts[byte(v>>at)]++
		} else {
			v |= uint32(q.code.code(&q.coder, int(byte(v>>at)))) << at
		}
	}
	return v
}

// chain puts the last commands into each packet, without a baseline, after the commands of a client
// in Unity's Netcode for Entities: the newest one, then for each older one a bit, equal to the next
// one or not, and the differences if not. Numbers have the fixed code of the library
// (Unity.Collections, StreamCompressionModel.Default): a prefix code of 2 to 6 bits for a bucket,
// then the offset in the bucket.
//
// Differences to the original, all in favor of the peer: the newest command is coded against zero
// by the same code, but uncompressed in Unity; each older one is compared with the next one, but
// with the newest in older versions; differences of angles are modulo a full turn; and no ticks are
// sent, because there is one command per tick.
type chain struct {
	*layout
	coder
}

// The buckets: the size of offsets, and the minimum.
var (
	bucketBits   = [...]uint{0, 0, 1, 2, 3, 4, 6, 8, 10, 12, 15, 18, 21, 24, 27, 32}
	bucketMin    = [...]uint32{0, 1, 2, 4, 8, 16, 32, 96, 352, 1376, 5472, 38240, 300384, 2397536, 19174752, 153392480}
	bucketPrefix = newPrefixCode([]uint8{2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6, 6, 6, 6})
)

func newChain(s *schema.Schema, _ Form, _ []Sample) (Peer, error) {
	return &chain{layout: newLayout(s)}, nil
}

func (p *chain) Append(dst []byte, _ *schema.Frame, rows []schema.Frame) ([]byte, error) {
	p.pack(dst)
	p.commands(rows, 0)
	return p.w.Bytes(), nil
}

func (p *chain) Decode(rows []schema.Frame, _ *schema.Frame, payload []byte) error {
	p.unpack(payload)
	if !p.commands(rows, 8*len(payload)) {
		return malformed("chain4")
	}
	return p.r.Err()
}

// commands codes rows, the newest first. Byte strings in a payload are at most limit bytes long. It
// reports whether the payload is well-formed.
func (p *chain) commands(rows []schema.Frame, limit int) bool {
	next := p.zero
	for i := len(rows) - 1; i >= 0; i-- {
		cur := &rows[i]
		switch {
		case i < len(rows)-1 && p.same(!p.reading && cur.Equal(next), 0):
			cur.CopyFrom(next)
		case !p.command(next, cur, limit):
			return false
		}
		next = cur
	}
	return true
}

// same codes whether two values are equal, in a bit whose value is one if they are.
func (p *chain) same(is bool, one uint64) bool {
	v := one
	if !is {
		v = 1 - one
	}
	return p.bits(v, 1) == one
}

// command codes the differences of cur from base.
func (p *chain) command(base, cur *schema.Frame, limit int) bool {
	for i := range p.components {
		c := &p.components[i]
		if !p.reading {
			p.number(uint32(zigzag(int64(c.step(cur.Ints[i], base.Ints[i])))))
			continue
		}
		cur.Ints[i] = base.Ints[i] + int32(unzigzag(uint64(p.number(0))))
		if !c.xor {
			cur.Ints[i] = c.value(uint32(cur.Ints[i]))
		}
	}
	for i := range cur.Bytes {
		b := &cur.Bytes[i]
		if p.same(!p.reading && string(*b) == string(base.Bytes[i]), 1) {
			*b = append((*b)[:0], base.Bytes[i]...)
			continue
		}
		size := int(p.number(uint32(len(*b))))
		if p.reading && size > limit {
			return false
		}
		*b = p.resize(*b, size)
		for k := range *b {
			(*b)[k] = byte(p.bits(uint64((*b)[k]), 8))
		}
	}
	return true
}

// step returns the difference of two values as numbers.
func (c *component) step(cur, base int32) int32 {
	if c.xor {
		return cur - base
	}
	return c.extend(uint32(cur) - uint32(base))
}

// number codes a number that is probably small.
func (p *chain) number(v uint32) uint32 {
	b := len(bucketMin) - 1
	for !p.reading && v < bucketMin[b] {
		b--
	}
	b = bucketPrefix.code(&p.coder, b)
	return bucketMin[b] + uint32(p.bits(uint64(v-bucketMin[b]), bucketBits[b]))
}

// prefixCode is a canonical prefix code.
type prefixCode struct {
	codes   []uint64 // first bit in the lowest place
	lengths []uint8
	tree    [][2]int16 // children by the next bit: a node, or ^symbol
}

// newPrefixCode returns the code with these lengths, which must be complete.
func newPrefixCode(lengths []uint8) *prefixCode {
	p := &prefixCode{codes: make([]uint64, len(lengths)), lengths: lengths, tree: make([][2]int16, 1, len(lengths))}
	order := make([]int, len(lengths))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(lengths[a], lengths[b]) })
	code, length := uint64(0), uint8(0)
	for _, symbol := range order {
		code <<= lengths[symbol] - length
		length = lengths[symbol]
		p.add(symbol, code)
		code++
	}
	return p
}

// add sets the code of a symbol, whose first bit is in the highest place.
func (p *prefixCode) add(symbol int, code uint64) {
	node := int16(0)
	for left := p.lengths[symbol]; left > 0; left-- {
		bit := code >> (left - 1) & 1
		p.codes[symbol] |= bit << (p.lengths[symbol] - left)
		next := &p.tree[node][bit]
		switch {
		case left == 1:
			*next = ^int16(symbol)
		case *next == 0:
			*next = int16(len(p.tree))
			p.tree = append(p.tree, [2]int16{})
		}
		node = p.tree[node][bit]
	}
}

// code codes a symbol.
func (p *prefixCode) code(c *coder, symbol int) int {
	if !c.reading {
		c.w.WriteBits(p.codes[symbol], uint(p.lengths[symbol]))
		return symbol
	}
	node := int16(0)
	for {
		if node = p.tree[node][c.r.ReadBits(1)]; node < 0 {
			return int(^node)
		}
	}
}

// huffmanLengths returns the lengths of the Huffman code of at least two symbols with these counts,
// all positive.
func huffmanLengths(counts []int) []uint8 {
	type set struct {
		count   int
		symbols []int
	}
	sets := make([]set, len(counts))
	for i, n := range counts {
		sets[i] = set{n, []int{i}}
	}
	lengths := make([]uint8, len(counts))
	for len(sets) > 1 {
		slices.SortStableFunc(sets, func(a, b set) int { return cmp.Compare(b.count, a.count) })
		a, b := sets[len(sets)-1], sets[len(sets)-2]
		both := set{a.count + b.count, slices.Concat(a.symbols, b.symbols)}
		for _, s := range both.symbols {
			lengths[s]++
		}
		sets = append(sets[:len(sets)-2], both)
	}
	return lengths
}
