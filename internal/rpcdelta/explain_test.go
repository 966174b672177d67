package rpcdelta

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/inspect"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/schematest"
)

// TestExplain checks that the parts of any payload add up to the totals of an Profile, that
// each frame has each component once, and that a forecast plus its residual is the decoded value.
func TestExplain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := schematest.FromRapid(t)
		s := pick.Schema()
		codec := rapid.SampledFrom(Codecs()).Draw(t, "codec")
		p := newPair(t, s, EncoderConfig{Codec: codec, Redundancy: 2}, DecoderConfig{Codec: codec})
		components := 0
		for _, f := range NewProfile(s).Fields {
			components += len(f.Components)
		}
		for i := range 40 {
			pick.Walk(s, p.frame)
			p.send(t)
			e, profile := inspect.Explanation{}, NewProfile(s)
			p.dec.Explain(&e)
			p.dec.Measure(profile)
			out, err := p.dec.Decode(p.payload)
			must(t, err)
			last := &out[len(out)-1]
			if e.Newest != last.Seq || !e.Frames[len(e.Frames)-1].Equal(last.Frame) || (e.Base != nil) != (last.Kind == Delta) || len(e.Frames) != last.Redundant+1 {
				t.Fatalf("%+v of %+v", e, last)
			}
			checkParts(t, s, &e, components, profile.PayloadBits-profile.RoundingBits)
			h, err := inspect.ParseHeader(p.payload)
			if err != nil || h.RPC != 0 || h.Distance != last.BaselineAge || (uint16(last.Seq)-h.Seq)&0x7f != 0 || (h.Bits+7)/8 > len(p.payload) {
				t.Fatalf("%+v, %v of %+v", h, err, last)
			}
			before := e.Newest
			p.dec.Explain(&e)
			if _, err := p.dec.Decode(p.payload); !errors.Is(err, ErrDuplicate) || e.Newest != before || e.Parts == nil {
				t.Fatalf("%v, %+v of a dropped payload", err, e)
			}
			if i%3 == 0 {
				p.acknowledge(t)
			}
		}
	})
}

func checkParts(t failer, s *schema.Schema, e *inspect.Explanation, components int, bits float64) {
	t.Helper()
	sum, seen := e.CountBits, make([]int, len(e.Frames))
	for _, part := range e.Parts {
		sum += part.Bits
		if part.Kind != inspect.PartComponent {
			continue
		}
		seen[part.Frame]++
		angle := s.Fields()[part.Field].Kind == schema.KindAngle
		if part.Forecasts && part.Forecast+part.Residual != int64(part.Value) && !angle {
			t.Fatalf("%+v", part)
		}
	}
	for _, n := range seen {
		if n != components {
			t.Fatalf("%v components of %d frames, want %d each", seen, len(e.Frames), components)
		}
	}
	if !near(sum, bits) {
		t.Fatalf("parts of %v bits, measured %v", sum, bits)
	}
}
