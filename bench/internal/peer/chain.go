package peer

import (
	"github.com/uplink-rpc/uplink/internal/codec/bitio"
	"github.com/uplink-rpc/uplink/schema"
)

// chain is the last commands in each packet, without a baseline, after what Unity's Netcode for Entities does with the
// commands of a client: the newest one, then for each older one a bit, like the one after it or not, and if not the
// differences. Numbers go through the library's fixed code (Unity.Collections, StreamCompressionModel.Default): a bucket
// by a prefix code of 2 to 6 bits, then the place in it.
//
// Differences to the original, all in the peer's favor: the newest command is coded against zero by the same code, where
// Unity writes it uncompressed; each older one is compared with the one after it, where older versions compared all with
// the newest; angles take the shorter way around; no ticks are sent, since commands are one a tick.
type chain struct {
	*layout
	w bitio.Writer
	r bitio.Reader
}

// The buckets: how many bits tell numbers in one apart, and the least number in it.
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
		p.pack(uint32(zigzag(int64(p.components[i].step(cur.Ints[i], base.Ints[i])))))
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

// step is the difference of two values as numbers.
func (c *component) step(cur, base int32) int32 {
	if c.xor {
		return cur - base
	}
	return c.extend(uint32(cur) - uint32(base))
}

// pack writes a number that is likely small.
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
		v := base.Ints[i] + int32(unzigzag(uint64(p.unpack())))
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
