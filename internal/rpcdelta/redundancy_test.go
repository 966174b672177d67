package rpcdelta

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/schema"
)

// TestRedundancyOverLinks verifies the delivery and the cost of redundancy, with held frames and
// without, and that both ends learn the same. Sequences without a payload do not count as lost.
func TestRedundancyOverLinks(t *testing.T) {
	warmUp, frames := 1000, 20_000/thin(7)
	for _, c := range []struct {
		every, redundancy int
		loss, burst       float64
		want              float64 // delivered fraction
		older             float64 // maximum redundant frames per frame
	}{
		{1, RedundancyAuto, 0, 1, 1, 0},
		{1, RedundancyAuto, 0.01, 1, 0.999, 2},
		{1, RedundancyAuto, 0.05, 3, 0.99, 7},
		{1, RedundancyAuto, 0.1, 1, 0.998, 5},
		{1, RedundancyAuto, 0.2, 1, 0.995, 7},
		{1, RedundancyOff, 0.3, 1, 0.65, 0},
		{2, RedundancyAuto, 0, 1, 1, 0},
		{2, RedundancyAuto, 0.1, 1, 0.99, 7},
		{3, RedundancyOff, 0.1, 1, 0.85, 0},
		{3, RedundancyAuto, 0.3, 1, 0.65, 7},
		{4, 3, 0.3, 1, 0.65, 7},
		{MaxHeld, RedundancyAuto, 0, 1, 1, 0},
		{-MaxHeld, RedundancyAuto, 0, 1, 1, 0},
	} {
		link := linkConfig{Delay: 3, Loss: c.loss, Burst: c.burst, Duplicate: 0.05}
		x := newStream(t, smallSchema(t), streamConfig{
			Seed: 5, Codec: Adaptive, Redundancy: c.redundancy, Every: c.every, AckEvery: 2, Smooth: true, Up: link, Down: link,
		})
		x.run(t, warmUp)
		delivered, older, payloads := x.delivered, x.older, len(x.names)
		x.run(t, frames)
		share, cost := float64(x.delivered-delivered)/float64(frames), float64(x.older-older)/float64(frames)
		held := float64(MaxHeld) / float64(frames)
		if share < c.want-held || cost > c.older || c.redundancy >= 0 && c.loss > 0 && cost == 0 {
			t.Errorf("%+v: %.4f delivered; %.2f older frames each", c, share, cost)
		}
		if n := len(x.names) - payloads; c.every > 0 && n != frames/c.every && n != frames/c.every+1 {
			t.Errorf("%+v: %d payloads of %d frames", c, n, frames)
		}
		if x.compared < frames/20 || c.loss == 0 && x.kinds[Keyframe]+x.kinds[Reset] > 10 {
			t.Errorf("%+v: both ends were compared %d times; kinds %v", c, x.compared, x.kinds)
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

// TestSetRedundancy verifies that a change applies to the next frames and preserves the loss
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
		for range MaxFrames {
			p.send(t)
			p.receive(t)
		}
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

// TestRedundancyFits verifies that a payload contains fewer older frames if not all fit.
func TestRedundancyFits(t *testing.T) {
	s := mustSchema(t, schema.Field{Name: "B", Kind: schema.KindBytes, Max: new(4000.0)})
	rng := rand.New(rand.NewPCG(1, 0))
	for _, c := range []struct{ limit, size, older int }{
		{1197, 100, 10}, {1197, 350, 2}, {1197, 500, 1}, {1197, 1000, 0}, {0, 10, 15}, {0, 100, 1}, {0, 200, 0}, {0, 400, 0},
	} {
		cfg := EncoderConfig{Codec: Adaptive, Redundancy: MaxRedundancy, RedundancyBytes: c.limit}
		p := newPair(t, s, cfg, DecoderConfig{})
		for i := range 20 {
			p.frame.Bytes[0] = nil
			for range c.size {
				p.frame.Bytes[0] = append(p.frame.Bytes[0], byte(rng.Uint32()))
			}
			info := p.send(t)
			if len(p.payload) > defaultMaxPayload || info.Redundant != min(i, c.older) {
				t.Fatalf("%+v: %d bytes with %d older frames", c, len(p.payload), info.Redundant)
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
	// Payload i has frames i-1 to i+1, as far as they are new.
	p.arrive(t, p.sendMarked(t, 10), []arrival{
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
	})
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
		p.restart(t)
		p.receive(t)
		p.acknowledge(t)
		if info := p.exchange(t); info.Kind != Reset {
			t.Errorf("%v: %+v, want a reset", v, info)
		}
	}
}

// TestRedundancyPlan verifies that the number of payloads that contain a frame alternates so that
// the share of lost frames meets the target, and that frames that are repeated more often than
// planned save copies of others.
func TestRedundancyPlan(t *testing.T) {
	for _, c := range []struct {
		loss, again float64
		deadline    int
		extra       int     // every so many frames one has another payload; 0: none
		min, max    float64 // mean number of planned payloads
	}{
		{0, 0, 0, 0, 1, 1},
		{1. / 4096, 0, 0, 0, 1, 1},
		{0.01, 0, 0, 0, 1.9, 2},
		{0.1, 0, 0, 0, 3.4, 3.7},
		{0.1, 0, 0, 2, 3.3, 3.55},
		{0.2, 0, 0, 0, 4.6, 5},
		{0.05, 0, 7, 0, 2.6, 3},
		{0.1, 0.7, 0, 0, 15, 16},
		{0.1, 0.7, 7, 0, everyPayload, everyPayload},
	} {
		cfg := EncoderConfig{Codec: Adaptive, Deadline: c.deadline, Delivery: DefaultDelivery}
		r := newRedundancy(&cfg)
		r.loss = steadyLoss(c.loss, c.again)
		r.replan()
		const frames = 10000
		sum, lost := 0, 0.0
		for i := range frames {
			planned, _ := r.payloads()
			n := int(planned)
			sum += n
			if c.extra > 0 && i%c.extra == 0 {
				n++
				r.contained(n, n-1)
			}
			if n < len(r.lost) {
				lost += r.lost[n]
			}
		}
		if mean := float64(sum) / frames; mean < c.min || mean > c.max {
			t.Errorf("%+v: %v payloads", c, mean)
		}
		if target := 1 - DefaultDelivery; c.again == 0 && lost/frames > target*1.01 {
			t.Errorf("%+v: %v of the frames are lost, want %v", c, lost/frames, target)
		}
	}
}

// steadyLoss returns the estimates after a long time with a share of lost payloads, of those after
// a lost one too.
func steadyLoss(share, again float64) lossMeter {
	return lossMeter{loss: share, recent: share, again: again, seen: lossMemory}
}

// TestRedundancyForced verifies that held frames leave early for the last planned copy only where
// payloads that leave anyway do not bring enough copies, and that the target is then met.
func TestRedundancyForced(t *testing.T) {
	for _, c := range []struct {
		missing  int     // every so many frames have a payload less than planned, unless it is forced
		min, max float64 // share of the frames with a forced payload
	}{{0, 0, 0}, {100, 0, 0}, {2, 0.7, 0.9}, {1, 0.8, 0.95}} {
		cfg := EncoderConfig{Codec: Adaptive, Deadline: 7, Delivery: DefaultDelivery}
		r := newRedundancy(&cfg)
		r.loss = steadyLoss(0.05, 0)
		r.replan()
		const frames = 20000
		lost, forced := 0.0, 0
		for i := range frames {
			planned, must := r.payloads()
			n := int(planned)
			if must == planned && n > r.copies+1 {
				forced++
			} else if n > r.copies+1 && c.missing > 0 && i%c.missing == 0 {
				r.contained(n-1, n)
				n--
			}
			lost += r.lost[n]
		}
		if share := float64(forced) / frames; share < c.min || share > c.max {
			t.Errorf("%+v: %v are forced", c, share)
		}
		if share := lost / frames; share > (1-DefaultDelivery)*1.05 {
			t.Errorf("%+v: %v of the frames are lost", c, share)
		}
	}
}

// TestLossChanges verifies that the estimate of a constant loss is steady, and follows a change
// soon.
func TestLossChanges(t *testing.T) {
	const seed = 11
	rng := rand.New(rand.NewPCG(seed, 0))
	var m lossMeter
	before := 0.0
	for _, share := range []float64{0, 0.05, 0.2, 0.02, 0.1, 0} {
		mean, square, n := 0.0, 0.0, 0
		for i := range 8000 {
			m.observe(rng.Float64() < share)
			if i == 400 && math.Abs(m.loss-share) > math.Abs(m.loss-before)/2 {
				t.Errorf("seed %d: loss %v after %v: estimated as %v after %d payloads", seed, share, before, m.loss, i)
			}
			if i >= 2000 {
				mean, square, n = mean+m.loss, square+m.loss*m.loss, n+1
			}
		}
		mean /= float64(n)
		deviation := math.Sqrt(square/float64(n) - mean*mean)
		if math.Abs(mean-share) > 0.15*share+1e-4 || deviation > 1.5*math.Sqrt(share/(2*lossMemory))+1e-4 {
			t.Errorf("seed %d: loss %v: estimated as %v, deviation %v", seed, share, mean, deviation)
		}
		before = share
	}
}
