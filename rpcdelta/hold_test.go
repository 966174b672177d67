package rpcdelta

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/schematest"
	"github.com/uplink-rpc/uplink/rpcdelta/internal/wire"
	"github.com/uplink-rpc/uplink/schema"
)

// TestHoldOverLinks verifies that held frames arrive unchanged, once and in order, and that both
// ends learn the same from them.
func TestHoldOverLinks(t *testing.T) {
	warmUp, frames := 600, 3000/thin(2)
	losses := []float64{0.1, 0, 0.3}
	for every := 1; every <= 4; every += thin(3) {
		for _, redundancy := range []int{RedundancyOff, RedundancyAuto, 3} {
			for _, loss := range losses[:len(losses)/thin(3)] {
				link := linkConfig{Delay: 3, Loss: loss, Duplicate: 0.05}
				x := newStream(t, smallSchema(t), streamConfig{
					Seed: uint64(every), Codec: Adaptive, Redundancy: redundancy, Every: every, AckEvery: 6, Smooth: true, Up: link, Down: link,
				})
				x.run(t, warmUp)
				delivered, older, payloads := x.delivered, x.older, len(x.names)
				x.run(t, frames)
				what := fmt.Sprintf("%d frames a payload, redundancy %d, loss %v", every, redundancy, loss)
				if n := len(x.names) - payloads; n != frames/every {
					t.Errorf("%s: %d payloads of %d frames", what, n, frames)
				}
				if x.compared < frames/10 {
					t.Errorf("%s: both ends were compared %d times", what, x.compared)
				}
				share, minimum := float64(x.delivered-delivered)/float64(frames), 1-loss-0.05
				switch {
				case loss == 0:
					minimum = 1
				case redundancy != RedundancyOff && loss == 0.1 && every <= 2:
					minimum = 0.99
				}
				if share < minimum {
					t.Errorf("%s: %.4f delivered, want %v", what, share, minimum)
				}
				if n := x.older - older; loss == 0 && redundancy != 3 && n != 0 || loss > 0 && redundancy == RedundancyAuto && n < frames/3 {
					t.Errorf("%s: %d frames were sent again", what, n)
				}
			}
		}
	}
}

// TestHoldDoesNotCountAsLoss verifies that sequences without a payload do not count as lost
// payloads.
func TestHoldDoesNotCountAsLoss(t *testing.T) {
	for _, every := range []int{2, 4, MaxHeld, -MaxHeld} {
		x := newStream(t, smallSchema(t), streamConfig{Seed: 1, Codec: Adaptive, Every: every, Smooth: true, Up: linkConfig{Delay: 3}, Down: linkConfig{Delay: 3}})
		x.run(t, 2000)
		if x.older != 0 || x.missed != 0 || x.enc.redundancy.loss.loss != 0 {
			t.Errorf("every %d: %d frames sent again, %d missed, loss %v", every, x.older, x.missed, x.enc.redundancy.loss.loss)
		}
		if x.kinds[Delta] < 1900/MaxHeld || x.kinds[Keyframe]+x.kinds[Reset] > 10 {
			t.Errorf("every %d: kinds %v", every, x.kinds)
		}
	}
}

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
	for i := range 3 {
		p.frame.Ints[0] = int32(i)
		must(t, p.enc.Hold(p.frame))
	}
	must(t, p.enc.Ack(Ack{Seq: 4, ResetReason: ErrBaselineMissing}))
	var info Info
	p.payload, info = p.enc.AppendHeld(p.payload[:0])
	if info.Kind != Reset || info.Seq != 7 || info.Held != 2 {
		t.Fatalf("%+v, want a reset", info)
	}
	out, err := p.dec.Decode(p.payload)
	if err != nil || len(out) != 3 {
		t.Fatalf("%+v, %v, want 3 frames", out, err)
	}
	for i, d := range out {
		if d.Frame.Ints[0] != int32(i) || d.Seq != uint64(5+i) || d.Missed != 0 {
			t.Errorf("%+v of %v", d.Info, d.Frame)
		}
	}
	p.acknowledge(t)
	if info := p.exchange(t); info.Kind != Delta || info.BaselineAge != 1 {
		t.Errorf("%+v, want a delta", info)
	}
}

// TestHoldFits verifies that frames that do not fit into one payload are sent in several.
func TestHoldFits(t *testing.T) {
	s := mustSchema(t, schema.Field{Name: "B", Kind: schema.KindBytes, Max: number(4000)})
	rng := rand.New(rand.NewPCG(1, 0))
	noise := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	for _, v := range []variant{{codec: RLE}, {codec: Adaptive, redundancy: RedundancyOff}, {codec: Adaptive, redundancy: 3}} {
		p := newPair(t, s, v.encoder(EncoderConfig{}), DecoderConfig{})
		var sent [][]byte
		seq := 0
		for round := range 40 / thin(2) {
			hold := rng.IntN(MaxHeld) + 1
			for range hold {
				b := noise(rng.IntN(1150))
				p.frame.Bytes[0] = b
				must(t, p.enc.Hold(p.frame))
				sent = append(sent, b)
			}
			if n := p.enc.Held(); n != hold {
				t.Fatalf("%d held, want %d", n, hold)
			}
			for p.enc.Held() > 0 {
				before := p.enc.Held()
				var info Info
				p.payload, info = p.enc.AppendHeld(p.payload[:0])
				if len(p.payload) > defaultMaxPayload || info.Held+1 != before-p.enc.Held() {
					t.Fatalf("%v, round %d: %+v of %d bytes, %d of %d held", v, round, info, len(p.payload), p.enc.Held(), before)
				}
				out, err := p.dec.Decode(p.payload)
				must(t, err)
				for _, d := range out {
					if d.Seq != uint64(seq) || d.Missed != 0 || !bytes.Equal(d.Frame.Bytes[0], sent[seq]) {
						t.Fatalf("%v: frame %d, want %d; %d missed", v, d.Seq, seq, d.Missed)
					}
					seq++
				}
			}
			p.acknowledge(t)
		}
		if seq != len(sent) {
			t.Errorf("%v: %d of %d frames came", v, seq, len(sent))
		}
		if out, info := p.enc.AppendHeld([]byte("x")); string(out) != "x" || info != (Info{}) {
			t.Errorf("%v: %q, %+v of no frames", v, out, info)
		}
	}
}

// TestHoldTight verifies that every held frame can be sent, however close to the limit, and that
// Hold rejects a frame that is one byte too large.
func TestHoldTight(t *testing.T) {
	held, rejected := 0, 0
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 9))
		pick := schematest.FromRand(rng)
		s := pick.Schema()
		f, g := s.NewFrame(), s.NewFrame()
		pick.Frame(s, f, f)
		roomy := newPair(t, s, EncoderConfig{Redundancy: RedundancyOff}, DecoderConfig{})
		alone := func() int {
			roomy.enc.hasBase = false
			out, _, err := roomy.enc.AppendFrame(nil, f)
			must(t, err)
			return len(out)
		}
		limit := max(wire.MaxHeader+1, alone())
		p := newPair(t, s, EncoderConfig{MaxPayload: limit, Redundancy: int(pick.Between(RedundancyOff, MaxRedundancy))}, DecoderConfig{})
		for range 60 {
			pick.Frame(s, g, f)
			f, g = g, f
			switch err := p.enc.Hold(f); {
			case errors.Is(err, ErrTooLarge) == (alone() <= limit):
				t.Fatalf("seed %d: %v, at most %d bytes, %v takes %d", seed, err, limit, f, alone())
			case err != nil:
				rejected++
			default:
				held++
			}
			for p.enc.Held() == MaxHeld || p.enc.Held() > 0 && rng.IntN(3) == 0 {
				before := p.enc.Held()
				out, _ := p.enc.AppendHeld(nil)
				if p.enc.Held() == before {
					t.Fatalf("seed %d: %d frames cannot leave, at most %d bytes", seed, before, limit)
				}
				if _, err := p.dec.Decode(out); err != nil || len(out) > limit {
					t.Fatalf("seed %d: %d bytes, %v", seed, len(out), err)
				}
				p.acknowledge(t)
			}
		}
	}
	if held < 1000 || rejected < 1000 {
		t.Errorf("%d frames held, %d rejected", held, rejected)
	}
}

// TestHoldErrors verifies that a rejected frame uses no sequence and does not affect held frames.
func TestHoldErrors(t *testing.T) {
	s := mustSchema(t, schema.Field{Name: "A", Kind: schema.KindAngle}, schema.Field{Name: "B", Kind: schema.KindBytes, Max: number(4000)})
	p := newPair(t, s, EncoderConfig{Codec: Adaptive}, DecoderConfig{})
	good := s.NewFrame()
	hold := func() {
		must(t, p.enc.Hold(good))
	}
	hold()
	hold()
	large := s.NewFrame()
	large.Bytes[0] = make([]byte, 3000)
	for i := range large.Bytes[0] {
		large.Bytes[0][i] = byte(i * i >> 3)
	}
	before := []byte("before")
	if err := p.enc.Hold(large); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "1197") {
		t.Errorf("too large: %v", err)
	}
	if out, _, err := p.enc.AppendFrame(before, large); !errors.Is(err, ErrTooLarge) || !bytes.Equal(out, before) {
		t.Errorf("too large: %q, %v", out, err)
	}
	bad := s.NewFrame()
	bad.Ints[0] = 1 << 20
	if err := p.enc.Hold(bad); err == nil {
		t.Error("a component out of range is held")
	}
	if err := p.enc.Hold(&schema.Frame{}); !errors.Is(err, schema.ErrFrame) {
		t.Errorf("a frame of another schema: %v", err)
	}
	for range MaxHeld - 2 {
		hold()
	}
	if err := p.enc.Hold(good); err == nil || p.enc.Held() != MaxHeld {
		t.Errorf("%v with %d frames held", err, p.enc.Held())
	}
	if err := p.enc.Ack(Ack{Seq: 0}); !errors.Is(err, ErrAck) {
		t.Errorf("an ack of a frame that is held: %v", err)
	}
	out, info := p.enc.AppendHeld(nil)
	if info.Seq != MaxHeld-1 || p.enc.Held() != 0 {
		t.Errorf("%+v, %d held", info, p.enc.Held())
	}
	for seq := range uint16(MaxHeld) {
		if err := p.enc.Ack(Ack{Seq: seq}); (err == nil) != (seq == MaxHeld-1) {
			t.Errorf("an ack of %d: %v", seq, err)
		}
	}
	if got, err := p.dec.Decode(out); err != nil || len(got) != MaxHeld {
		t.Errorf("%d frames, %v", len(got), err)
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
