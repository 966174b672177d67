package peer

import (
	"bytes"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/uplink-rpc/uplink/schema"
)

// packed is the call in msgpack: one array of its quantized numbers, each as short as msgpack has it, and its byte
// strings. It has neither names nor an array for each vector.
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
