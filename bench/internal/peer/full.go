package peer

import (
	"encoding/binary"
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/codec/bitio"
	"github.com/uplink-rpc/uplink/schema"
)

// coder packs or unpacks bits, so that one function describes a format in both directions. Such a
// function assigns the results, which equal the arguments when it packs.
type coder struct {
	w       bitio.Writer
	r       bitio.Reader
	reading bool
}

// pack starts appending to dst.
func (c *coder) pack(dst []byte) {
	c.w.Reset(dst)
	c.reading = false
}

// unpack starts reading src.
func (c *coder) unpack(src []byte) {
	c.r.Reset(src)
	c.reading = true
}

// bits codes the low n bits of v. When it packs, it returns all of v.
func (c *coder) bits(v uint64, n uint) uint64 {
	if c.reading {
		return c.r.ReadBits(n)
	}
	c.w.WriteBits(v, n)
	return v
}

// full codes each frame without a baseline and packs it as Unreal packs vectors and rotators.
// Integers and byte strings follow in whole bytes. inspect.FullBits computes the size.
type full struct {
	*layout
	coder
}

func newFull(s *schema.Schema, _ Form, _ []Sample) (Peer, error) {
	return &full{layout: newLayout(s)}, nil
}

// Limits of the header of a group.
const (
	groupLimit     = 24
	wideGroupLimit = 31
)

func (p *full) Append(dst []byte, _ *schema.Frame, rows []schema.Frame) ([]byte, error) {
	p.pack(dst)
	p.code(&rows[0])
	return p.appendBytes(p.w.Bytes(), &rows[0]), nil
}

func (p *full) Decode(rows []schema.Frame, _ *schema.Frame, payload []byte) error {
	p.unpack(payload)
	p.code(&rows[0])
	p.r.Align()
	if rest, ok := p.parseBytes(&rows[0], p.r.Rest()); !ok || len(rest) != 0 || p.r.Err() != nil {
		return malformed("full")
	}
	return nil
}

// code codes all fields except integers and byte strings.
func (p *full) code(cur *schema.Frame) {
	for i := range p.fields {
		f := &p.fields[i]
		switch f.shape {
		case group:
			p.group(f, cur)
		case angles:
			for _, c := range f.components {
				v := &cur.Ints[c.at]
				if p.bits(uint64(min(*v, 1)), 1) == 0 {
					*v = 0
				} else {
					*v = int32(p.bits(uint64(*v), c.bits))
				}
			}
		case quat:
			for _, c := range f.components {
				cur.Ints[c.at] = c.value(uint32(p.bits(uint64(c.plain(cur.Ints[c.at])), c.bits)))
			}
		case flags, blob:
		}
	}
}

// group codes the size of the largest component, and all components in that size.
func (p *full) group(f *field, cur *schema.Frame) {
	limit := uint32(groupLimit)
	if f.wide {
		limit = wideGroupLimit
	}
	var header uint32
	if p.reading {
		header = p.r.ReadTruncated(limit)
	} else {
		largest := uint64(1)
		for _, c := range f.components {
			v := int64(cur.Ints[c.at])
			largest = max(largest, uint64(max(v, -v)))
		}
		header = uint32(bits.Len64(largest)) - 1
		p.w.WriteTruncated(header, limit)
	}
	bias := int64(1) << (header + 1)
	for _, c := range f.components {
		v := &cur.Ints[c.at]
		*v = int32(int64(p.bits(uint64(int64(*v)+bias), uint(header+2))) - bias)
	}
}

// appendBytes appends integers and byte strings.
func (p *full) appendBytes(dst []byte, cur *schema.Frame) []byte {
	for i := range p.fields {
		f := &p.fields[i]
		for k := range f.components {
			if c := &f.components[k]; f.shape == flags {
				dst = binary.LittleEndian.AppendUint32(dst, c.plain(cur.Ints[c.at]))
				dst = dst[:len(dst)-4+c.bytes()]
			}
		}
		if f.shape == blob {
			b := cur.Bytes[f.blob]
			if f.size == 0 {
				dst = binary.AppendUvarint(dst, uint64(len(b)))
			}
			dst = append(dst, b...)
		}
	}
	return dst
}

func (c *component) bytes() int { return int(c.bits+7) / 8 }

// parseBytes parses integers and byte strings, and returns the rest.
func (p *full) parseBytes(cur *schema.Frame, src []byte) (rest []byte, ok bool) {
	for i := range p.fields {
		f := &p.fields[i]
		for k := range f.components {
			c := &f.components[k]
			if f.shape != flags {
				continue
			}
			var b [4]byte
			if n := copy(b[:c.bytes()], src); n < c.bytes() {
				return src, false
			}
			src = src[c.bytes():]
			cur.Ints[c.at] = c.value(binary.LittleEndian.Uint32(b[:]))
		}
		if f.shape == blob {
			size := uint64(f.size)
			if size == 0 {
				v, n := binary.Uvarint(src)
				if n <= 0 {
					return src, false
				}
				size, src = v, src[n:]
			}
			if size > uint64(f.most) || size > uint64(len(src)) {
				return src, false
			}
			cur.Bytes[f.blob] = append(cur.Bytes[f.blob][:0], src[:size]...)
			src = src[size:]
		}
	}
	return src, true
}
