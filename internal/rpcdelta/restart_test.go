package rpcdelta

import (
	"errors"
	"testing"

	"github.com/uplink-rpc/uplink/internal/schema"
)

// TestDecoderRestart verifies that a new decoder in the middle of a stream causes a reset, at any
// sequence.
func TestDecoderRestart(t *testing.T) { forVariants(t, checkDecoderRestart) }

func checkDecoderRestart(t *testing.T, v variant) {
	for _, at := range []int{1, 2, 7, 64, 130, 1000, 65_500, 65_530, 65_536, 65_538, 65_545, 131_080} {
		for _, jitter := range []int{0, 8} {
			for _, loss := range []float64{0, 0.3} {
				if at > 1000 && (jitter == 0 || loss == 0 || testing.Short() || v.redundancy != 0 || v.codec == Adaptive && at&^3 != 1<<16) {
					continue
				}
				if testing.Short() && (jitter == 0 || loss == 0) {
					continue
				}
				x := newStream(t, smallSchema(t), v.stream(streamConfig{
					Seed: uint64(at), Smooth: true, RPC: at % 9, DeliverLate: at%2 == 0,
					Up: linkConfig{Delay: 5, Jitter: jitter, Loss: loss}, Down: linkConfig{Delay: 5, Jitter: jitter, Loss: loss},
				}))
				x.run(t, at)
				x.restartDecoder(t)
				x.expected = []error{ErrBaselineMissing}
				x.run(t, 100)
				x.expected = nil
				x.run(t, 300)
				if n := x.deltasIn(t, 100); n < 95 {
					t.Errorf("restart at %d, jitter %d, loss %v: %d deltas of 100 frames", at, jitter, loss, n)
				}
			}
		}
	}
}

// TestDecoderRestartOften verifies that restarts work after the epoch wraps.
func TestDecoderRestartOften(t *testing.T) { forVariants(t, checkDecoderRestartOften) }

func checkDecoderRestartOften(t *testing.T, v variant) {
	x := newStream(t, smallSchema(t), v.stream(streamConfig{
		Seed: 1, Up: linkConfig{Delay: 3, Jitter: 3, Loss: 0.2}, Down: linkConfig{Delay: 3, Jitter: 3, Loss: 0.2},
	}))
	x.expected = []error{ErrBaselineMissing, ErrAck}
	for range 50 {
		x.run(t, 40)
		before := x.delivered
		x.restartDecoder(t)
		x.run(t, 40)
		if x.delivered < before+10 {
			t.Fatalf("frame %d: %d frames delivered after a restart", x.now, x.delivered-before)
		}
	}
}

// TestLateAcrossZero verifies that a frame sent before the first frame of a new decoder is late,
// although its 16-bit sequence is larger because of the wrap.
func TestLateAcrossZero(t *testing.T) { forSingles(t, checkLateAcrossZero) }

func checkLateAcrossZero(t *testing.T, v variant) {
	p := newPair(t, smallSchema(t), v.encoder(EncoderConfig{}), DecoderConfig{DeliverLate: true})
	for p.enc.next != 1<<16-3 {
		p.send(t)
	}
	payloads := p.sendMarked(t, 6)
	for _, i := range []int{4, 0, 2, 3, 5, 1} { // 1, -3, -1, 0, 2, -2
		out, err := p.dec.Decode(payloads[i])
		switch {
		case i < 3 && !errors.Is(err, ErrLate):
			t.Errorf("payload %d: %v, %v", i, out, err)
		case i >= 3 && (err != nil || out[0].Seq != uint64(i-3) || out[0].Late != (i == 3)):
			t.Errorf("payload %d: %+v, %v", i, out, err)
		}
	}
}

// TestEarlyLosses verifies that the first frame that arrives opens the stream if those before it
// were lost.
func TestEarlyLosses(t *testing.T) { forSingles(t, checkEarlyLosses) }

func checkEarlyLosses(t *testing.T, v variant) {
	for _, lost := range []int{1, 5, 63, 64, 200, 2000} {
		p := newPair(t, smallSchema(t), v.encoder(EncoderConfig{}), DecoderConfig{})
		for range lost {
			p.send(t)
		}
		p.send(t)
		if d := p.receive(t); d.Missed != uint64(lost) || d.Kind != Reset {
			t.Errorf("%d lost: %+v", lost, d)
		}
		if a := p.acknowledge(t); !a.Whole || a.Len != 0 {
			t.Errorf("%d lost: %+v", lost, a)
		}
		if info := p.exchange(t); info.Kind != Delta || info.BaselineAge != 1 {
			t.Errorf("%d lost: %+v, want a delta", lost, info)
		}
	}
}

// TestAskReset checks that a decoder that asks for a reset gets one, without having missed
// anything, and that another decoder can continue from it.
func TestAskReset(t *testing.T) {
	forVariants(t, func(t *testing.T, v variant) {
		s := mustSchema(t, schema.Field{Name: "A", Kind: schema.KindVec2, Resolution: 1})
		p := newPair(t, s, v.encoder(EncoderConfig{}), DecoderConfig{})
		p.dec.AskReset()
		if p.dec.AckDue() {
			t.Fatal("an ack is due before anything came")
		}
		for i := range 50 {
			p.frame.Ints[0] = int32(i * i)
			p.exchange(t)
			p.acknowledge(t)
		}
		p.dec.AskReset()
		if !p.dec.AckDue() {
			t.Fatal("no ack is due")
		}
		p.acknowledge(t)
		cfg := p.dec.cfg
		cfg.Scratch = nil
		other, err := NewDecoder(s, cfg)
		must(t, err)
		for i := range 50 {
			p.frame.Ints[0] = int32(i * 7)
			p.send(t)
			want := p.receive(t)
			got, err := other.Decode(p.payload)
			if err != nil || i == 0 && want.Kind != Reset || got[len(got)-1].Kind != want.Kind || !got[len(got)-1].Frame.Equal(want.Frame) {
				t.Fatalf("%d: %+v, want %+v, %v", i, got, want, err)
			}
			p.acknowledge(t)
		}
	})
}
