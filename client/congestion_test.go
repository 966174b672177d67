package client

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/rpcdelta"
)

// testPath is a path with a congestion controller: 60 payloads and 10 round-trip times per second.
type testPath struct {
	congestion
	now   time.Time
	total rpcdelta.DeliveryStats
	rng   *rand.Rand

	rtt, jitter time.Duration // each round trip takes rtt and a random time of mean jitter
	loss        float64
	demand      float64 // bits/s without a limit
}

// run lets seconds pass.
func (p *testPath) run(seconds int) {
	for range seconds {
		for range 10 {
			p.delay.Add(p.rtt + time.Duration(p.rng.ExpFloat64()*float64(p.jitter)))
		}
		for range 60 {
			if p.rng.Float64() < p.loss {
				p.total.Lost++
			} else {
				p.total.Processed++
			}
		}
		rate := p.demand
		if p.limit != 0 {
			rate = min(rate, p.limit)
		}
		p.now = p.now.Add(rateWindow)
		p.step(p.now, rate, p.total, rate < p.demand)
	}
}

func newTestPath(seed uint64) *testPath {
	const ms = time.Millisecond
	return &testPath{now: time.Unix(0, 0), rng: rand.New(rand.NewPCG(seed, 1)), rtt: 60 * ms, jitter: 5 * ms, demand: 60_000}
}

// TestCongestionIgnoresRadio checks that loss and jitter without a queue never limit the rate.
func TestCongestionIgnoresRadio(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newTestPath(rapid.Uint64().Draw(t, "seed"))
		p.rtt = time.Duration(rapid.IntRange(5, 300).Draw(t, "rtt")) * time.Millisecond
		p.jitter = time.Duration(rapid.IntRange(0, 40).Draw(t, "jitter")) * time.Millisecond
		p.loss = rapid.Float64Range(0, 0.2).Draw(t, "loss")
		for range 60 {
			if p.run(1); p.limit != 0 {
				t.Fatalf("limited to %.0f bits/s", p.limit)
			}
		}
	})
}

// TestCongestionQueue checks that a queue reduces the rate within seconds, but not to nothing, that
// a short one does not, and that the limit disappears when the queue does.
func TestCongestionQueue(t *testing.T) {
	p := newTestPath(2)
	p.run(10)
	queue := func(seconds int) {
		p.rtt += 60 * time.Millisecond
		p.run(seconds)
		p.rtt -= 60 * time.Millisecond
	}
	if queue(sustained - 1); p.limit != 0 {
		t.Fatalf("limited to %.0f bits/s after a short queue", p.limit)
	}
	p.run(5)
	if queue(sustained); p.limit != pathBackoff*p.demand {
		t.Fatalf("limited to %.0f bits/s at first", p.limit)
	}
	if queue(5); p.limit != minPathRate {
		t.Fatalf("limited to %.0f bits/s after some seconds", p.limit)
	}
	if p.run(30); p.limit != 0 {
		t.Errorf("limited to %.0f bits/s without a queue", p.limit)
	}
	p.demand = minPathRate / 2
	if queue(5); p.limit != 0 {
		t.Errorf("%.0f bits/s limited to %.0f", p.demand, p.limit)
	}
}

// TestCongestionLoss checks that excessive loss reduces the rate, and with a queue even further.
func TestCongestionLoss(t *testing.T) {
	p := newTestPath(3)
	p.run(10)
	p.loss = 0.5
	if p.run(20); p.limit < minPathRate || p.limit > 1.2*minPathRate {
		t.Fatalf("limited to %.0f bits/s by loss", p.limit)
	}
	p.rtt += 100 * time.Millisecond
	if p.run(8); p.limit > minPathRate/2 {
		t.Errorf("limited to %.0f bits/s by loss and a queue", p.limit)
	}
	p.loss = 0
	if p.run(90); p.limit != 0 {
		t.Errorf("limited to %.0f bits/s at the end", p.limit)
	}
}

// TestCongestionWithoutAcks checks that nothing is decided without measurements, and that another
// path starts without a limit.
func TestCongestionWithoutAcks(t *testing.T) {
	p := newTestPath(4)
	p.run(10)
	p.rtt *= 3
	p.run(5)
	limit := p.limit
	for range 10 {
		p.now = p.now.Add(rateWindow)
		p.step(p.now, limit, p.total, true)
	}
	if limit == 0 || p.limit != limit {
		t.Errorf("limited to %.0f bits/s, then %.0f", limit, p.limit)
	}
}

// TestDepartures checks that each ack gives at most one round-trip time, that of its newest
// payload.
func TestDepartures(t *testing.T) {
	d := newDepartures()
	start := time.Unix(0, 0)
	at := func(seq uint64) time.Time { return start.Add(time.Duration(seq) * time.Millisecond) }
	for seq := uint64(65_500); seq < 65_600; seq += 3 { // wraps
		d.put(seq, at(seq))
	}
	now := at(65_700)
	for i, c := range []struct {
		ack  rpcdelta.Ack
		want time.Duration
	}{
		{rpcdelta.Ack{None: true}, 0},
		{rpcdelta.Ack{Seq: 65_501}, 0}, // never sent
		{rpcdelta.Ack{Seq: 65_503}, 197 * time.Millisecond},
		{rpcdelta.Ack{Seq: 65_503}, 0}, // again
		{rpcdelta.Ack{Seq: 65_500}, 0}, // older
		{rpcdelta.Ack{Seq: 65_596 & 0xffff}, 104 * time.Millisecond},
		{rpcdelta.Ack{Seq: 65_533}, 0}, // older
	} {
		if got := d.take(&c.ack, now); got != c.want {
			t.Errorf("ack %d: %v, want %v", i, got, c.want)
		}
	}
	d.reset()
	if got := d.take(&rpcdelta.Ack{Seq: 65_599 & 0xffff}, now); got != 0 {
		t.Errorf("after a reset: %v", got)
	}
}
