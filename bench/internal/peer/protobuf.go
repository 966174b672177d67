package peer

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/uplink-rpc/uplink/schema"
)

// proto is the call as a protobuf message whose fields are the schema's: sint32 for numbers with a sign, uint32 for
// others, repeated ones packed, bytes for byte strings. As in proto3, a field that is 0 or empty is left out.
type proto struct {
	*layout
	room []byte
}

func newProtobuf(s *schema.Schema, _ Form, _ []Sample) (Peer, error) {
	return &proto{layout: newLayout(s)}, nil
}

func (p *proto) Append(dst []byte, _ *schema.Frame, rows []schema.Frame) ([]byte, error) {
	for i := range p.fields {
		f, number := &p.fields[i], protowire.Number(i+1)
		switch {
		case f.shape == blob:
			if b := rows[0].Bytes[f.blob]; len(b) > 0 {
				dst = protowire.AppendBytes(protowire.AppendTag(dst, number, protowire.BytesType), b)
			}
		case len(f.components) == 1:
			c := &f.components[0]
			if v := rows[0].Ints[c.at]; v != 0 {
				dst = protowire.AppendVarint(protowire.AppendTag(dst, number, protowire.VarintType), c.wire(v))
			}
		default:
			p.room = p.room[:0]
			for k := range f.components {
				c := &f.components[k]
				p.room = protowire.AppendVarint(p.room, c.wire(rows[0].Ints[c.at]))
			}
			dst = protowire.AppendBytes(protowire.AppendTag(dst, number, protowire.BytesType), p.room)
		}
	}
	return dst, nil
}

// wire is the varint of a value.
func (c *component) wire(v int32) uint64 {
	if c.signed {
		return protowire.EncodeZigZag(int64(v))
	}
	return uint64(uint32(v))
}

func (c *component) unwire(v uint64) int32 {
	if c.signed {
		return int32(protowire.DecodeZigZag(v))
	}
	return int32(uint32(v))
}

func (p *proto) Decode(rows []schema.Frame, _ *schema.Frame, payload []byte) error {
	cur := &rows[0]
	clear(cur.Ints)
	for i := range cur.Bytes {
		cur.Bytes[i] = cur.Bytes[i][:0]
	}
	for len(payload) > 0 {
		number, _, n := protowire.ConsumeTag(payload)
		if n < 0 || int(number) > len(p.fields) {
			return malformed("protobuf")
		}
		payload = payload[n:]
		f := &p.fields[number-1]
		if f.shape != blob && len(f.components) == 1 {
			v, n := protowire.ConsumeVarint(payload)
			if n < 0 {
				return protowire.ParseError(n)
			}
			c := &f.components[0]
			cur.Ints[c.at], payload = c.unwire(v), payload[n:]
			continue
		}
		b, n := protowire.ConsumeBytes(payload)
		if n < 0 {
			return protowire.ParseError(n)
		}
		payload = payload[n:]
		if f.shape == blob {
			cur.Bytes[f.blob] = append(cur.Bytes[f.blob][:0], b...)
			continue
		}
		for k := range f.components {
			c := &f.components[k]
			v, n := protowire.ConsumeVarint(b)
			if n < 0 {
				return protowire.ParseError(n)
			}
			cur.Ints[c.at], b = c.unwire(v), b[n:]
		}
	}
	return nil
}
