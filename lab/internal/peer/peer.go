// Package peer implements alternatives to this project's codecs behind one interface: compressors
// of differences of frames, serializers of whole calls, and schemes of engines. All are independent
// implementations; comments list the differences from the originals.
package peer

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"github.com/vmihailenco/msgpack/v5"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/uplink-rpc/uplink/internal/codec/bitio"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// Peer codes the frames of one schema. Its payloads have no header. Not safe for concurrent use.
type Peer interface {
	// Append appends the payload of rows: consecutive frames, oldest first. base is the baseline,
	// or nil if there is none.
	Append(dst []byte, base *schema.Frame, rows []schema.Frame) ([]byte, error)
	// Decode decodes a payload to rows. Their number equals that of Append, since a receiver knows
	// the number of frames in a payload.
	Decode(rows []schema.Frame, base *schema.Frame, payload []byte) error
}

// Sample contains the frames of a payload and their baseline, to train a peer. Base is nil if there
// is no baseline.
type Sample struct {
	Base *schema.Frame
	Rows []schema.Frame
}

// Class groups peers by purpose.
type Class string

// The classes of peers.
const (
	// Engine is a scheme of a game engine.
	Engine Class = "engine"
	// General is a compressor or serializer for any data.
	General Class = "general"
)

// Kind describes a peer and creates it for a schema.
type Kind struct {
	Name  string
	Class Class
	// Span is the number of frames in a payload, at least 1. Peers of class General take any
	// number.
	Span int
	// Delta reports whether payloads are coded against a baseline.
	Delta bool
	// Forms are the layouts of the peer's input, at least one. Results use the form with the fewest
	// bits.
	Forms []Form
	// New returns the peer for a schema. Not every peer learns from samples.
	New func(s *schema.Schema, form Form, samples []Sample) (Peer, error)
}

// Kinds returns all peers.
func Kinds() []Kind {
	whole := []Form{""}
	return []Kind{
		{Name: "full", Class: Engine, Span: 1, Forms: whole, New: newFull},
		{Name: "quake3", Class: Engine, Span: 1, Delta: true, Forms: whole, New: newQuake},
		{Name: "chain4", Class: Engine, Span: 4, Forms: whole, New: newChain},
		{Name: "varint", Class: General, Span: 1, Delta: true, Forms: []Form{Varint}, New: onDifferences(newUncompressed)},
		{Name: "zstd", Class: General, Span: 1, Delta: true, Forms: Forms(), New: onDifferences(newZstd)},
		{Name: "flate", Class: General, Span: 1, Delta: true, Forms: Forms(), New: onDifferences(newFlate)},
		{Name: "s2", Class: General, Span: 1, Delta: true, Forms: Forms(), New: onDifferences(newS2)},
		{Name: "lz4", Class: General, Span: 1, Delta: true, Forms: Forms(), New: onDifferences(newLZ4)},
		{Name: "msgpack", Class: General, Span: 1, Forms: whole, New: repeating(newMsgpack)},
		{Name: "protobuf", Class: General, Span: 1, Forms: whole, New: repeating(newProtobuf)},
	}
}

// RepeatForms returns the layouts of payloads with several frames: the Forms, and the Forms with
// older frames coded against the frame after them.
func (k *Kind) RepeatForms() []Form {
	forms := slices.Clone(k.Forms)
	if k.Delta {
		for _, f := range k.Forms {
			forms = append(forms, f+chained)
		}
	}
	return forms
}

// repeated applies a peer for single frames to several. Each payload but the last is preceded by
// its size.
type repeated struct {
	Peer
	room []byte
}

// repeating returns a Kind.New for several frames, given a Kind.New for single frames.
func repeating(create func(*schema.Schema, Form, []Sample) (Peer, error)) func(*schema.Schema, Form, []Sample) (Peer, error) {
	return func(s *schema.Schema, form Form, samples []Sample) (Peer, error) {
		p, err := create(s, form, samples)
		return &repeated{Peer: p}, err
	}
}

func (p *repeated) Append(dst []byte, base *schema.Frame, rows []schema.Frame) (_ []byte, err error) {
	for len(rows) > 1 {
		if p.room, err = p.Peer.Append(p.room[:0], base, rows[:1]); err != nil {
			return dst, err
		}
		dst = protowire.AppendBytes(dst, p.room)
		rows = rows[1:]
	}
	return p.Peer.Append(dst, base, rows)
}

func (p *repeated) Decode(rows []schema.Frame, base *schema.Frame, payload []byte) error {
	for len(rows) > 1 {
		one, n := protowire.ConsumeBytes(payload)
		if n < 0 {
			return protowire.ParseError(n)
		}
		if err := p.Peer.Decode(rows[:1], base, one); err != nil {
			return err
		}
		rows, payload = rows[1:], payload[n:]
	}
	return p.Peer.Decode(rows, base, payload)
}

// malformed returns the error for a payload that the peer cannot decode.
func malformed(peer string) error { return fmt.Errorf("%s: malformed payload", peer) }

// uncompressed passes the input of compressors through unchanged.
type uncompressed struct{}

func newUncompressed([][]byte) (compressor, error) { return uncompressed{}, nil }

func (uncompressed) compress(dst, src []byte) ([]byte, error) { return append(dst, src...), nil }

func (uncompressed) expand(dst, src []byte) ([]byte, error) {
	if len(src) > cap(dst)-len(dst) {
		return dst, malformed("varint")
	}
	return append(dst, src...), nil
}

// packed codes a frame in msgpack, as one flat array of byte strings and of numbers in their
// shortest form.
type packed struct {
	*layout
	out bytes.Buffer
	in  bytes.Reader
	enc *msgpack.Encoder
	dec *msgpack.Decoder
}

func newMsgpack(s *schema.Schema, _ Form, _ []Sample) (Peer, error) {
	p := &packed{layout: newLayout(s)}
	p.enc, p.dec = msgpack.NewEncoder(&p.out), msgpack.NewDecoder(&p.in)
	return p, nil
}

func (p *packed) Append(dst []byte, _ *schema.Frame, rows []schema.Frame) ([]byte, error) {
	p.out.Reset()
	if err := p.enc.EncodeArrayLen(len(p.components) + p.blobs); err != nil {
		return dst, err
	}
	for i := range p.components {
		var err error
		if c, v := &p.components[i], rows[0].Ints[i]; c.signed {
			err = p.enc.EncodeInt(int64(v))
		} else {
			err = p.enc.EncodeUint(uint64(uint32(v)))
		}
		if err != nil {
			return dst, err
		}
	}
	for _, b := range rows[0].Bytes {
		if err := p.enc.EncodeBytes(b); err != nil {
			return dst, err
		}
	}
	return append(dst, p.out.Bytes()...), nil
}

func (p *packed) Decode(rows []schema.Frame, _ *schema.Frame, payload []byte) error {
	p.in.Reset(payload)
	p.dec.Reset(&p.in)
	if n, err := p.dec.DecodeArrayLen(); err != nil || n != len(p.components)+p.blobs {
		return malformed("msgpack")
	}
	for i := range p.components {
		v, err := p.dec.DecodeInt64()
		if err != nil {
			return err
		}
		rows[0].Ints[i] = int32(v)
	}
	for i := range rows[0].Bytes {
		b, err := p.dec.DecodeBytes()
		if err != nil {
			return err
		}
		rows[0].Bytes[i] = append(rows[0].Bytes[i][:0], b...)
	}
	return nil
}

// proto codes a frame as a protobuf message with the fields of the schema: sint32 for signed
// numbers, uint32 for others, packed if repeated, and bytes for byte strings. As in proto3, fields
// that are 0 or empty are omitted.
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

// wire returns the varint of a value; unwire is its inverse.
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

// full sends each frame in full, packed as Unreal packs vectors and rotators. Integers and byte
// strings are uncompressed. Its size is that of schema.Schema.FullBits.
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
