package rpcdelta

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/wire"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/schematest"
)

// TestHoldRedundancy verifies that redundancy counts payloads, not frames.
func TestHoldRedundancy(t *testing.T) {
	p := newPair(t, smallSchema(t), EncoderConfig{Codec: Adaptive, Redundancy: 2}, DecoderConfig{})
	for range 20 {
		p.exchange(t)
	}
	for i, c := range []struct{ hold, older, limit int }{
		{0, 0, 7}, {1, 2, 7}, {0, 3, 7}, {2, 5, 7}, {3, 7, 7}, {3, 3, 0}, {1, 1, 0}, {1, 3, 1}, {0, 0, 0},
	} {
		p.enc.LimitRedundancy(c.limit)
		for range c.hold {
			must(t, p.enc.Hold(p.frame))
		}
		if info := p.send(t); info.Redundant != c.older || info.Held != c.hold || p.enc.Held() != 0 {
			t.Errorf("payload %d: %+v, want %d older frames", i, info, c.older)
		}
	}
	if n := p.enc.Redundancy(); n != 0 {
		t.Errorf("redundancy %d", n)
	}
}

// TestHoldAcrossReset verifies that frames held when an epoch begins are in its first payload, and
// that its ack is valid.
func TestHoldAcrossReset(t *testing.T) {
	p := newPair(t, smallSchema(t), EncoderConfig{Codec: Adaptive}, DecoderConfig{})
	for range 5 {
		p.exchange(t)
	}
	for range 3 {
		must(t, p.enc.Hold(p.frame))
	}
	must(t, p.enc.Ack(Ack{Seq: 4, ResetReason: ErrBaselineMissing}))
	var info Info
	p.payload, info = p.enc.AppendHeld(p.payload[:0])
	if info.Kind != Reset || info.Seq != 7 || info.Held != 2 {
		t.Fatalf("%+v, want a reset", info)
	}
	out, err := p.dec.Decode(p.payload)
	if err != nil || len(out) != 3 || out[0].Seq != 5 {
		t.Fatalf("%+v, %v, want 3 frames from 5 on", out, err)
	}
	p.acknowledge(t)
	if info := p.exchange(t); info.Kind != Delta || info.BaselineAge != 1 {
		t.Errorf("%+v, want a delta", info)
	}
}

// TestHoldTight verifies that every held frame is sent unchanged and in order, however close to the
// limit, in several payloads if one is too small, and that Hold rejects a frame that is one byte
// too large.
func TestHoldTight(t *testing.T) {
	rejected := 0
	var sent []*schema.Frame
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 9))
		pick := schematest.FromRand(rng)
		s := pick.Schema()
		f := s.NewFrame()
		pick.Frame(s, f, f)
		codec := Codecs()[seed/2%2]
		roomy := newPair(t, s, EncoderConfig{Codec: codec, Redundancy: RedundancyOff}, DecoderConfig{})
		alone := func() int {
			roomy.enc.hasBase = false
			out, _, err := roomy.enc.AppendFrame(nil, f)
			must(t, err)
			return len(out)
		}
		limit := max(wire.MaxHeader+1, alone())
		p := newPair(t, s, EncoderConfig{
			Codec: codec, MaxPayload: limit, Redundancy: int(pick.Between(RedundancyOff, MaxRedundancy)),
		}, DecoderConfig{})
		next := len(sent)
		first := next
		for range 60 {
			g := s.NewFrame()
			pick.Frame(s, g, f)
			f = g
			switch err := p.enc.Hold(f); {
			case errors.Is(err, ErrTooLarge) == (alone() <= limit):
				t.Fatalf("seed %d: %v, at most %d bytes, %v takes %d", seed, err, limit, f, alone())
			case err != nil:
				rejected++
			default:
				sent = append(sent, f)
			}
			for p.enc.Held() == MaxHeld || p.enc.Held() > 0 && rng.IntN(3) == 0 {
				before := p.enc.Held()
				b, info := p.enc.AppendHeld(nil)
				if info.Held+1 != before-p.enc.Held() || len(b) > limit {
					t.Fatalf("seed %d: %+v of %d bytes, %d of %d held", seed, info, len(b), p.enc.Held(), before)
				}
				out, err := p.dec.Decode(b)
				must(t, err)
				for _, d := range out {
					if d.Seq != uint64(next-first) || d.Missed != 0 || !d.Frame.Equal(sent[next]) {
						t.Fatalf("seed %d: frame %d, want %d; %d missed", seed, d.Seq, next-first, d.Missed)
					}
					next++
				}
				p.acknowledge(t)
			}
		}
		if next+p.enc.Held() != len(sent) {
			t.Fatalf("seed %d: %d frames of %d arrived, %d are held", seed, next, len(sent), p.enc.Held())
		}
	}
	if len(sent) < 1000 || rejected < 1000 {
		t.Errorf("%d frames held, %d rejected", len(sent), rejected)
	}
}

// TestHoldTurnsOver verifies that payloads near the wrap of the 16-bit sequence contain no frames
// that a new decoder would give a negative sequence.
func TestHoldTurnsOver(t *testing.T) {
	p := newPair(t, smallSchema(t), EncoderConfig{Codec: Adaptive, Redundancy: 3}, DecoderConfig{})
	for p.enc.next < 1<<16-2 { // never acked
		p.send(t)
	}
	next := p.enc.next
	for range 4 {
		must(t, p.enc.Hold(p.frame))
	}
	for p.enc.Held() > 0 {
		p.payload, _ = p.enc.AppendHeld(p.payload[:0])
		out, err := p.dec.Decode(p.payload)
		must(t, err)
		for _, d := range out {
			if n := uint16(d.Seq); n >= 1<<16-2 || n < 2 {
				next++
			}
		}
	}
	if next != p.enc.next {
		t.Errorf("all but %d frames came", p.enc.next-next)
	}
}
