package rpcdelta

import (
	"errors"
	"testing"

	"github.com/uplink-rpc/uplink/internal/schema"
)

// TestDesync verifies that the next hash detects a frame that was corrupted at one end, that no
// wrong frame is delivered from then on, and that a reset repairs the stream.
func TestDesync(t *testing.T) { forVariants(t, checkDesync) }

func checkDesync(t *testing.T, v variant) {
	for _, late := range []bool{false, true} {
		x := newStream(t, smallSchema(t), v.stream(streamConfig{
			Seed: 1, Smooth: true, DeliverLate: late,
			Up: linkConfig{Delay: 4, Jitter: 4}, Down: linkConfig{Delay: 4},
		}))
		x.run(t, 200)
		for n := x.dec.processed.Newest - 20; n <= x.dec.processed.Newest; n++ {
			if f, ok := x.dec.ring.Get(n); ok {
				f.Ints[0] ^= 1
			}
		}
		// Until it is found frames are wrong.
		x.expected, x.loose = []error{ErrBaselineMissing, ErrDesync, ErrMalformed}, true
		epoch, frames := x.dec.epoch, 0
		// what cannot be decoded any more may lead to a reset before a hash does
		for x.drops[ErrDesync] == 0 && x.dec.epoch == epoch && frames < 200 {
			x.run(t, 1)
			frames++
		}
		if frames > 60+2*8+2 {
			t.Errorf("not found after %d frames, at 60 Hz", frames)
		}
		x.expected, x.loose = x.expected[:2], false
		x.lostCount()
		x.run(t, 30)
		x.expected = nil
		if n := x.deltasIn(t, 200); n < 190 {
			t.Errorf("%d deltas of 200 frames", n)
		}
		if x.dec.resetReason != nil {
			t.Errorf("a reset is still requested: %v", x.dec.resetReason)
		}
	}
}

// TestDesyncStays verifies that missing baselines after a desync do not replace the reported
// reason.
func TestDesyncStays(t *testing.T) { forVariants(t, checkDesyncStays) }

func checkDesyncStays(t *testing.T, v variant) {
	p := newPair(t, mustSchema(t, schema.Field{Name: "P", Kind: schema.KindVec3, Resolution: 1}), v.encoder(EncoderConfig{}), DecoderConfig{})
	p.frame.Ints[0] = 1 << 20
	for range 60 {
		p.exchange(t)
	}
	f, _ := p.dec.ring.Get(p.dec.processed.Newest)
	f.Ints[0]++
	p.frame.Ints[0]++
	for _, want := range []error{ErrDesync, ErrBaselineMissing} {
		p.send(t)
		if _, err := p.dec.Decode(p.payload); !errors.Is(err, want) {
			t.Fatalf("got %v, want %v", err, want)
		}
	}
	if a := p.acknowledge(t); !errors.Is(a.ResetReason, ErrDesync) {
		t.Errorf("%+v, want desync", a)
	}
	if info := p.send(t); info.Kind != Reset {
		t.Errorf("%+v, want a reset", info)
	}
	p.receive(t)
	if a := p.acknowledge(t); a.ResetReason != nil {
		t.Errorf("%+v, want no reset", a)
	}
}

// TestHashCadence verifies that one delta per second contains the hash of its baseline.
func TestHashCadence(t *testing.T) { forVariants(t, checkHashCadence) }

func checkHashCadence(t *testing.T, v variant) {
	for _, rate := range []float64{0.5, 20, 60} {
		s, err := schema.New("Test", rate, []schema.Field{{Name: "P", Kind: schema.KindVec3, Resolution: 1}})
		must(t, err)
		p := newPair(t, s, v.encoder(EncoderConfig{}), DecoderConfig{})
		p.frame.Ints[0] = 1 << 20
		p.exchange(t)
		hashes := 0
		frames := int(max(rate, 1)) * 20
		for range frames {
			p.frame.Ints[0]++
			info := p.exchange(t)
			if h := p.header(t); h.Checked {
				hashes++
			} else if h.Long {
				t.Fatalf("%+v", info)
			}
		}
		if hashes != 20 {
			t.Errorf("%v Hz: %d hashes in %d frames", rate, hashes, frames)
		}
	}
}
