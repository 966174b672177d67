package peer

import (
	"cmp"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/uplink-rpc/uplink/internal/codec/bitio"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// quake is the delta of Quake 3's entity state, modeled on ioquake3's MSG_WriteDeltaEntity and
// MSG_WriteBits. A frame has the number of the last changed field, and for each field up to it a
// bit that tells whether it changed. A changed field has a bit that tells whether it is zero, and
// its new value, not the difference. A number (a float in Quake) has a bit that tells whether it
// fits into 13 bits; if it does, it is sent in 13 bits, otherwise in full. Other values have their
// full width. Bits beyond whole bytes are sent plain; each byte has a fixed Huffman code.
//
// Differences from the original, all in the peer's favor. A number in full has 24 bits, as
// quantization leaves them, not 32. The Huffman code is trained on the trace, not on Quake. There
// is no entity number, and an unchanged frame has no bytes.
type quake struct {
	*layout
	code   *prefixCode
	counts []int // counts of byte values, while training
	w      bitio.Writer
	r      bitio.Reader
}

// smallBits is the size of a small number in bits.
const smallBits = 13

func newQuake(s *schema.Schema, _ Form, samples []Sample) (Peer, error) {
	q := &quake{layout: newLayout(s), counts: slices.Repeat([]int{1}, 256)}
	if n := len(q.components) + q.blobs; n > 255 {
		return nil, fmt.Errorf("quake3: %d fields, want at most 255", n)
	}
	for _, s := range samples {
		q.delta(s.Base, &s.Rows[0])
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
	base = cmp.Or(base, q.zero)
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

// last returns the number of the last changed field, counted from 1.
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

// write writes the low bits of v, or counts its bytes while training.
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
	base = cmp.Or(base, q.zero)
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

// chain sends the last commands in each packet, without a baseline, modeled on how Unity's Netcode
// for Entities sends commands. The newest command comes first. Each older command has a bit that
// tells whether it equals the one after it; if not, its differences follow. Numbers have the
// library's fixed code (Unity.Collections, StreamCompressionModel.Default): a bucket in a prefix
// code of 2 to 6 bits, then the offset in it.
//
// Differences from the original, all in the peer's favor. The newest command is coded against zero
// with the same code, where Unity sends it uncompressed. Each older command is compared with the
// one after it, where older versions compared it with the newest. Angles use the shorter direction.
// No ticks are sent, since there is one command per tick.
type chain struct {
	*layout
	w bitio.Writer
	r bitio.Reader
}

// The buckets: number of bits of the offset, and lowest number.
var (
	bucketBits   = [...]uint{0, 0, 1, 2, 3, 4, 6, 8, 10, 12, 15, 18, 21, 24, 27, 32}
	bucketLeast  = [...]uint32{0, 1, 2, 4, 8, 16, 32, 96, 352, 1376, 5472, 38240, 300384, 2397536, 19174752, 153392480}
	bucketPrefix = newPrefixCode([]uint8{2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6, 6, 6, 6})
)

func newChain(s *schema.Schema, _ Form, _ []Sample) (Peer, error) {
	return &chain{layout: newLayout(s)}, nil
}

func (p *chain) Append(dst []byte, _ *schema.Frame, rows []schema.Frame) ([]byte, error) {
	p.w.Reset(dst)
	after := p.zero
	for i := len(rows) - 1; i >= 0; i-- {
		cur := &rows[i]
		if i == len(rows)-1 {
			p.command(after, cur)
		} else if cur.Equal(after) {
			p.w.WriteBits(0, 1)
		} else {
			p.w.WriteBits(1, 1)
			p.command(after, cur)
		}
		after = cur
	}
	return p.w.Bytes(), nil
}

func (p *chain) command(base, cur *schema.Frame) {
	for i := range p.components {
		p.pack(uint32(protowire.EncodeZigZag(int64(p.components[i].step(cur.Ints[i], base.Ints[i])))))
	}
	for i, b := range cur.Bytes {
		same := uint64(1)
		if string(b) != string(base.Bytes[i]) {
			same = 0
		}
		if p.w.WriteBits(same, 1); same == 0 {
			p.pack(uint32(len(b)))
			for _, c := range b {
				p.w.WriteBits(uint64(c), 8)
			}
		}
	}
}

// step returns the difference of two values as numbers.
func (c *component) step(cur, base int32) int32 {
	if c.xor {
		return cur - base
	}
	return c.extend(uint32(cur) - uint32(base))
}

// pack writes a number that is probably small.
func (p *chain) pack(v uint32) {
	b := len(bucketLeast) - 1
	for v < bucketLeast[b] {
		b--
	}
	bucketPrefix.write(&p.w, b)
	p.w.WriteBits(uint64(v-bucketLeast[b]), bucketBits[b])
}

func (p *chain) unpack() uint32 {
	b := bucketPrefix.read(&p.r)
	return bucketLeast[b] + uint32(p.r.ReadBits(bucketBits[b]))
}

func (p *chain) Decode(rows []schema.Frame, _ *schema.Frame, payload []byte) error {
	p.r.Reset(payload)
	after := p.zero
	for i := len(rows) - 1; i >= 0; i-- {
		cur := &rows[i]
		if i < len(rows)-1 && p.r.ReadBits(1) == 0 {
			cur.CopyFrom(after)
		} else if !p.parse(after, cur, 8*len(payload)) {
			return malformed("chain4")
		}
		after = cur
	}
	return p.r.Err()
}

func (p *chain) parse(base, cur *schema.Frame, most int) bool {
	for i := range p.components {
		c := &p.components[i]
		v := base.Ints[i] + int32(protowire.DecodeZigZag(uint64(p.unpack())))
		if !c.xor {
			v = c.value(uint32(v))
		}
		cur.Ints[i] = v
	}
	for i := range cur.Bytes {
		cur.Bytes[i] = append(cur.Bytes[i][:0], base.Bytes[i]...)
		if p.r.ReadBits(1) != 0 {
			continue
		}
		size := int(p.unpack())
		if size > most {
			return false
		}
		cur.Bytes[i] = cur.Bytes[i][:0]
		for range size {
			cur.Bytes[i] = append(cur.Bytes[i], byte(p.r.ReadBits(8)))
		}
	}
	return true
}

// prefixCode is a canonical prefix code.
type prefixCode struct {
	codes   []uint64 // first bit in the lowest position
	lengths []uint8
	tree    [][2]int16 // for each bit: another node, or ^symbol
}

// newPrefixCode makes the code with these lengths, which must be complete.
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

// add assigns a code to a symbol. The first bit of the code is the highest.
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

func (p *prefixCode) write(w *bitio.Writer, symbol int) {
	w.WriteBits(p.codes[symbol], uint(p.lengths[symbol]))
}

func (p *prefixCode) read(r *bitio.Reader) int {
	node := int16(0)
	for {
		if node = p.tree[node][r.ReadBits(1)]; node < 0 {
			return int(^node)
		}
	}
}

// huffmanLengths returns the lengths of the Huffman code for counts, at least two of which are not
// zero.
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
