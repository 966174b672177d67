package peer

import (
	"encoding/binary"
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/codec/bitio"
	"github.com/uplink-rpc/uplink/schema"
)

// full is each frame whole, packed as Unreal packs vectors and rotators. Integers and byte strings
// follow as they are. Its size is what schema.Schema.FullBits says.
type full struct {
	*layout
	w bitio.Writer
	r bitio.Reader
}

func newFull(s *schema.Schema, _ Form, _ []Sample) (Peer, error) {
	return &full{layout: newLayout(s)}, nil
}

func (p *full) Append(dst []byte, _ *schema.Frame, rows []schema.Frame) ([]byte, error) {
	w, cur := &p.w, &rows[0]
	w.Reset(dst)
	for i := range p.fields {
		switch f := &p.fields[i]; f.shape {
		case group:
			writeGroup(w, f, cur)
		case angles:
			for _, c := range f.components {
				if v := cur.Ints[c.at]; v == 0 {
					w.WriteBits(0, 1)
				} else {
					w.WriteBits(1, 1)
					w.WriteBits(uint64(v), c.bits)
				}
			}
		case quat:
			for _, c := range f.components {
				w.WriteBits(uint64(c.plain(cur.Ints[c.at])), c.bits)
			}
		case flags, blob:
		}
	}
	return p.appendBytes(w.Bytes(), cur), nil
}

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

func writeGroup(w *bitio.Writer, f *field, cur *schema.Frame) {
	most := uint64(1)
	for _, c := range f.components {
		v := int64(cur.Ints[c.at])
		most = max(most, uint64(max(v, -v)))
	}
	header := uint32(bits.Len64(most)) - 1
	w.WriteTruncated(header, f.limit)
	for _, c := range f.components {
		w.WriteBits(uint64(int64(cur.Ints[c.at])+1<<(header+1)), uint(header+2))
	}
}

func (p *full) Decode(rows []schema.Frame, _ *schema.Frame, payload []byte) error {
	r, cur := &p.r, &rows[0]
	r.Reset(payload)
	for i := range p.fields {
		switch f := &p.fields[i]; f.shape {
		case group:
			header := r.ReadTruncated(f.limit)
			for _, c := range f.components {
				cur.Ints[c.at] = int32(int64(r.ReadBits(uint(header+2))) - 1<<(header+1))
			}
		case angles:
			for _, c := range f.components {
				if cur.Ints[c.at] = 0; r.ReadBits(1) != 0 {
					cur.Ints[c.at] = int32(r.ReadBits(c.bits))
				}
			}
		case quat:
			for _, c := range f.components {
				cur.Ints[c.at] = c.value(uint32(r.ReadBits(c.bits)))
			}
		case flags, blob:
		}
	}
	r.Align()
	if rest, ok := p.parseBytes(cur, r.Rest()); !ok || len(rest) != 0 || r.Err() != nil {
		return malformed("full")
	}
	return nil
}

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
