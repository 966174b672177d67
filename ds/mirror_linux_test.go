package ds_test

import (
	"testing"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
)

// mirrored processes the fetched payloads.
type mirrored interface {
	take(b *testing.B, p *replay)
}

// mirror has decoders of all players like the DS.
type mirror[T any] struct {
	typ      *schema.Type[T]
	decoders []*rpcdelta.Decoder
	handle   func(*ds.Player, ds.Frame[T]) // nil: decodes only
	value    T
}

func newMirror[T any](b *testing.B, players int, codec rpcdelta.Codec, handle func(*ds.Player, ds.Frame[T])) *mirror[T] {
	typ, err := schema.Compile[T]("Move", 0)
	uplinktest.Must(b, err)
	m := &mirror[T]{typ: typ, handle: handle, decoders: make([]*rpcdelta.Decoder, players)}
	scratch := rpcdelta.NewScratch(typ.Schema())
	for i := range m.decoders {
		m.decoders[i] = newDecoder(b, typ.Schema(), codec, scratch)
	}
	return m
}

func newDecoder(b *testing.B, s *schema.Schema, codec rpcdelta.Codec, scratch *rpcdelta.Scratch) *rpcdelta.Decoder {
	d, err := rpcdelta.NewDecoder(s, rpcdelta.DecoderConfig{
		Codec: codec, PeerRing: rpcdelta.DefaultRing, Scratch: scratch,
	})
	uplinktest.Must(b, err)
	return d
}

func (m *mirror[T]) take(b *testing.B, p *replay) {
	for i, payload := range p.fetched {
		player, _ := p.turn(0, i)
		frames, err := m.decoders[player].Decode(payload)
		if err != nil || len(frames) != 1 {
			b.Errorf("%d frames, %v", len(frames), err)
			return
		}
		if m.handle == nil {
			continue
		}
		f := &frames[0]
		if err := m.typ.Restore(&m.value, f.Frame); err != nil {
			b.Error(err)
		}
		m.handle(nil, ds.Frame[T]{Value: m.value, Seq: f.Seq, Missed: f.Missed, Late: f.Late})
	}
}
