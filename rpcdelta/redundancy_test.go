package rpcdelta

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/schema"
)

// TestRedundancyAuto verifies the delivery of automatic redundancy on lossy links, and that it
// costs nothing on others.
func TestRedundancyAuto(t *testing.T) {
	const warmUp, frames = 1000, 20_000
	if testing.Short() {
		t.Skip("long")
	}
	for _, c := range []struct {
		loss, burst float64
		want        float64 // delivered fraction
		older       float64 // maximum redundant frames per frame
	}{
		{0, 1, 1, 0},
		{0.01, 1, 0.999, 2},
		{0.05, 3, 0.99, 7},
		{0.1, 1, 0.998, 5},
		{0.2, 1, 0.995, 7},
	} {
		link := linkConfig{Delay: 3, Loss: c.loss, Burst: c.burst}
		x := newStream(t, smallSchema(t), streamConfig{Seed: 5, Codec: Adaptive, AckEvery: 2, Smooth: true, Up: link, Down: link})
		x.run(t, warmUp)
		delivered, older := x.delivered, x.older
		x.run(t, frames)
		share, cost := float64(x.delivered-delivered)/frames, float64(x.older-older)/frames
		if share < c.want || cost > c.older {
			t.Errorf("loss %v in bursts of %v: %.4f delivered, want %v; %.2f older frames each, want at most %v",
				c.loss, c.burst, share, c.want, cost, c.older)
		}
		if x.compared < frames/4 {
			t.Errorf("loss %v: both ends were compared %d times", c.loss, x.compared)
		}
	}
}

// TestRedundancyFades verifies that redundancy ends some time after the loss ends.
func TestRedundancyFades(t *testing.T) {
	x := newStream(t, smallSchema(t), streamConfig{Seed: 6, Codec: Adaptive, Smooth: true, Up: linkConfig{Delay: 3, Loss: 0.2, Burst: 3}, Down: linkConfig{Delay: 3}})
	x.run(t, 1000)
	before := x.older
	x.run(t, 100)
	if x.older == before {
		t.Fatal("no older frames are sent on a lossy link")
	}
	x.up.Loss = 0
	x.run(t, 2500)
	if before = x.older; before == 0 {
		t.Fatal("no older frames")
	}
	x.run(t, 1000)
	if x.older != before {
		t.Errorf("%d older frames are sent on a link that loses nothing any more", x.older-before)
	}
}

// TestSetRedundancy verifies that a change applies to the next payload and preserves the loss
// estimates.
func TestSetRedundancy(t *testing.T) {
	p := newPair(t, smallSchema(t), EncoderConfig{Codec: Adaptive, Redundancy: RedundancyOff}, DecoderConfig{})
	for i := range 100 {
		if i%4 == 0 {
			p.send(t) // and it is lost
		} else {
			p.exchange(t)
		}
	}
	for range MaxRedundancy {
		p.send(t)
		p.receive(t)
	}
	for _, n := range []int{3, RedundancyOff, MaxRedundancy, 1, RedundancyAuto} {
		must(t, p.enc.SetRedundancy(n))
		info := p.send(t)
		if d := p.receive(t); d.Redundant != info.Redundant {
			t.Fatalf("%+v, want %+v", d.Info, info)
		}
		if want := max(n, 0); n != RedundancyAuto && info.Redundant != want || n == RedundancyAuto && info.Redundant == 0 {
			t.Errorf("SetRedundancy(%d): %d older frames", n, info.Redundant)
		}
	}
	for _, n := range []int{MaxRedundancy + 1, RedundancyOff - 1} {
		if err := p.enc.SetRedundancy(n); err == nil || !strings.Contains(err.Error(), "Redundancy of") {
			t.Errorf("SetRedundancy(%d): %v", n, err)
		}
	}
}

// TestRedundancyFixed verifies that a frame is missed if and only if all payloads that contain it
// are lost.
func TestRedundancyFixed(t *testing.T) {
	frames := 3000 / thin(5)
	for older := 0; older <= MaxRedundancy; older += thin(3) {
		r := older
		if r == 0 {
			r = RedundancyOff
		}
		x := newStream(t, smallSchema(t), streamConfig{
			Seed: uint64(older), Codec: Adaptive, Redundancy: r, Smooth: true,
			Up: linkConfig{Delay: 3, Loss: 0.4}, Down: linkConfig{Delay: 3, Loss: 0.2},
		})
		x.run(t, frames)
		x.up.Loss, x.down.Loss = 0, 0
		x.run(t, 20)
		lost := uint64(0)
		for n := range frames {
			if !slices.Contains(x.up.losses[n:n+older+1], false) {
				lost++
			}
		}
		if x.missed != lost {
			t.Errorf("%d older frames: %d of %d frames are missed, want %d", older, x.missed, frames, lost)
		}
	}
}

// TestRedundancyFits verifies that a payload contains fewer older frames if not all fit.
func TestRedundancyFits(t *testing.T) {
	s := mustSchema(t, schema.Field{Name: "B", Kind: schema.KindBytes, Max: number(4000)})
	rng := rand.New(rand.NewPCG(1, 0))
	for _, c := range []struct{ size, older int }{{100, 10}, {350, 2}, {500, 1}, {1000, 0}} {
		p := newPair(t, s, EncoderConfig{Codec: Adaptive, Redundancy: MaxRedundancy, RedundancyBytes: defaultMaxPayload}, DecoderConfig{})
		for i := range 20 {
			noise := make([]byte, c.size)
			for k := range noise {
				noise[k] = byte(rng.Uint32())
			}
			p.frame.Bytes[0] = noise
			info := p.send(t)
			if len(p.payload) > defaultMaxPayload || info.Redundant != min(i, c.older) {
				t.Fatalf("frames of %d bytes: %d bytes with %d older ones, want %d", c.size, len(p.payload), info.Redundant, c.older)
			}
			if i%8 != 7 {
				continue
			}
			if d := p.receive(t); d.Redundant != info.Redundant {
				t.Fatalf("%+v, want %+v", d.Info, info)
			}
		}
	}
}

// TestRedundancyOnce verifies that each frame is delivered once, whether it arrives in its own, a
// newer or a late payload, and that the frames of a late payload are in order.
func TestRedundancyOnce(t *testing.T) {
	p := newPair(t, smallSchema(t), EncoderConfig{Codec: Adaptive, Redundancy: 2}, DecoderConfig{DeliverLate: true})
	p.exchange(t)
	var payloads [][]byte
	for i := range 10 { // payload i has frames i-1 to i+1, as far as they are new
		p.frame.Ints[0] = int32(i)
		p.send(t)
		payloads = append(payloads, bytes.Clone(p.payload))
	}
	for _, c := range []struct {
		payload int
		want    []uint64
		late    bool
		missed  uint64
		err     error
	}{
		{1, []uint64{1, 2}, false, 0, nil},
		{0, nil, false, 0, ErrDuplicate},
		{1, nil, false, 0, ErrDuplicate},
		{7, []uint64{6, 7, 8}, false, 3, nil},
		{5, []uint64{4, 5}, true, 0, nil},
		{5, nil, true, 0, ErrDuplicate},
		{4, []uint64{3}, true, 0, nil},
		{3, nil, true, 0, ErrDuplicate},
		{6, nil, true, 0, ErrDuplicate},
		{9, []uint64{9, 10}, false, 0, nil},
	} {
		out, err := p.dec.Decode(payloads[c.payload])
		if !errors.Is(err, c.err) || len(out) != len(c.want) {
			t.Fatalf("payload %d: %+v, %v, want frames %v, %v", c.payload, out, err, c.want, c.err)
		}
		for i, d := range out {
			if d.Seq != c.want[i] || d.Late != c.late || d.Frame.Ints[0] != int32(d.Seq)-1 || i > 0 && d.Missed != 0 {
				t.Errorf("payload %d: %+v of %v", c.payload, d, d.Frame)
			}
		}
		if len(out) > 0 && out[0].Missed != c.missed {
			t.Errorf("payload %d: %d missed, want %d", c.payload, out[0].Missed, c.missed)
		}
	}
	p.acknowledge(t)
	if !p.enc.hasBase || p.enc.base != 10 {
		t.Errorf("base %d", p.enc.base)
	}
	// 3, 4 and 5 arrived late: neither end accepted them.
	for n := range uint64(11) {
		accepted := n < 3 || n > 5
		if got := p.enc.known.Has(n); got != accepted || p.dec.ring.Has(n) != accepted {
			t.Errorf("frame %d is accepted: %v at the encoder, %v at the decoder", n, got, p.dec.ring.Has(n))
		}
	}
}

// TestSlowAcks verifies that acks of frames that the encoder is about to evict determine the state
// of the decoder or cause a reset.
func TestSlowAcks(t *testing.T) {
	for _, ring := range []int{2, 20, 64, 256} {
		for delay := 80; delay < 400; delay += 9 * thin(19) {
			x := newStream(t, smallSchema(t), streamConfig{
				Seed: uint64(delay), Codec: Adaptive, Ring: ring, PeerRing: ring, Redundancy: MaxRedundancy, Smooth: true,
				Up: linkConfig{Delay: 3, Loss: 0.05}, Down: linkConfig{Delay: delay},
			})
			x.run(t, 3*delay)
			x.down.Delay = 1 // all at once
			x.run(t, 200)
			if n := x.deltasIn(t, 100); ring > 8 && n < 90 {
				t.Errorf("ring %d, delay %d: %d deltas of 100 frames", ring, delay, n)
			}
		}
	}
}

// TestReplacedDecoder verifies that the first ack of a decoder that replaces another without a gap
// resets the stream.
func TestReplacedDecoder(t *testing.T) {
	for _, v := range variants {
		p := newPair(t, smallSchema(t), v.encoder(EncoderConfig{PeerRing: 2}), DecoderConfig{Ring: 2})
		for range 5 {
			p.exchange(t)
		}
		p.enc.hasBase = false // as if the difference were longer
		p.send(t)
		p.enc.hasBase = true
		var err error
		if p.dec, err = NewDecoder(p.s, p.dec.cfg); err != nil {
			t.Fatal(err)
		}
		p.receive(t)
		p.acknowledge(t)
		if info := p.exchange(t); info.Kind != Reset {
			t.Errorf("%v: %+v, want a reset", v, info)
		}
	}
}

// TestRedundancyPlan verifies that the number of older payloads alternates so that the share of
// lost frames meets the target, and that payloads are sent more often only if the deadline requires
// it.
func TestRedundancyPlan(t *testing.T) {
	for _, c := range []struct {
		loss, again     float64
		batch, deadline int
		min, max        float64 // mean number of older payloads
		interval        float64 // minimum
	}{
		{0, 0, 0, 0, 0, 0, 1},
		{1. / 4096, 0, 0, 0, 0, 0, 1},
		{0.01, 0, 0, 0, 0.9, 1, 1},
		{0.1, 0, 0, 0, 2.4, 2.7, 1},
		{0.2, 0, 0, 0, 3.6, 4, 1},
		{0.05, 0, 2, 0, 1.6, 2, 3},
		{0, 0, 2, 7, 0, 0, 3},
		{0.01, 0, 2, 7, 0.9, 1, 3},
		{0.05, 0, 2, 7, 1.6, 2.2, 2.4},
		{0.1, 0, 2, 7, 2.4, 3.2, 1.9},
		{0.05, 0, 3, 13, 1.6, 2, 4},
		{0.1, 0.7, 2, 7, 7, 7, 1},
	} {
		cfg := EncoderConfig{Codec: Adaptive, MaxBatchDelay: c.batch, Deadline: c.deadline, Delivery: DefaultDelivery}
		r := newRedundancy(&cfg)
		r.loss.loss, r.loss.again, r.loss.seen = c.loss, c.again, lossMemory
		r.replan()
		if got := r.plan.interval; got < c.interval || got > float64(c.batch+1) || c.deadline == 0 && got != float64(c.batch+1) {
			t.Errorf("%+v: an interval of %v frames", c, got)
		}
		const payloads = 10000
		sum, lost := 0, 0.0
		for range payloads {
			n := r.choose()
			sum += n
			lost += r.missing(r.plan.interval, n)
		}
		if mean := float64(sum) / payloads; mean < c.min || mean > c.max {
			t.Errorf("%+v: %v older payloads", c, mean)
		}
		if target := 1 - DefaultDelivery; c.again == 0 && lost/payloads > target*1.01 {
			t.Errorf("%+v: %v of the frames are lost, want %v", c, lost/payloads, target)
		}
	}
}

// TestRedundancyBytes verifies that RedundancyBytes limits the number of older frames.
func TestRedundancyBytes(t *testing.T) {
	const limit = 40
	s := mustSchema(t, schema.Field{Name: "B", Kind: schema.KindFixed, Size: 100})
	p := newPair(t, s, EncoderConfig{Codec: Adaptive, Redundancy: 7, RedundancyBytes: limit}, DecoderConfig{})
	p.exchange(t)
	rng := rand.New(rand.NewPCG(1, 2))
	some := 0
	for i := range 200 {
		for range 1 + i%40 {
			p.frame.Bytes[0][rng.IntN(100)] = byte(rng.Uint32())
		}
		info := p.send(t)
		if info.Redundant > 0 && len(p.payload) > limit {
			t.Fatalf("%+v in %d bytes", info, len(p.payload))
		}
		if info.Redundant > 0 {
			some++
		}
		if i%6 == 0 {
			p.receive(t)
			p.acknowledge(t)
		}
	}
	if some == 0 || some == 200 {
		t.Errorf("%d of 200 payloads have older frames", some)
	}
}
