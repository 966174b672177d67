package replication

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/transport/simnet"
)

// path is a player's connection in virtual time: 60 messages a second, as large as the controller
// permits, and 30 acks a second in the other direction.
type path struct {
	*rateController
	down, up *simnet.Link
	start    time.Time
	now      time.Duration
	usage    float64 // used share of the rate
	inFlight *simnet.Queue[uint16]
	acks     *simnet.Queue[[2]uint64]
	received map[uint16]bool
	newest   uint16
	seq      uint16
	dropped  int // messages, by the link
	lastAck  time.Duration
}

func newPath(t testing.TB, lo, hi float64, cfg simnet.Config) *path {
	t.Helper()
	cfg.Seed = rand.Uint64()
	t.Logf("link %+v", cfg)
	down, err := simnet.NewLink(cfg)
	must(t, err)
	up, err := simnet.NewLink(simnet.Config{Delay: cfg.Delay, Jitter: cfg.Jitter, Loss: cfg.Loss, Seed: cfg.Seed + 1})
	must(t, err)
	p := &path{rateController: newRateController(), down: down, up: up, start: time.Unix(0, 0), usage: 1, received: map[uint16]bool{}}
	p.inFlight, p.acks = simnet.NewQueue[uint16](down), simnet.NewQueue[[2]uint64](up)
	p.limit(lo, hi)
	return p
}

const pathTick = time.Second / 60

// run advances the time by d and returns the mean rate in kbit/s.
func (p *path) run(d time.Duration) float64 {
	sum, ticks := 0.0, 0
	for end := p.now + d; p.now < end; p.now += pathTick {
		p.receive()
		now := p.start.Add(p.now)
		p.step(now)
		bytes := int(p.usage * p.rate / 8 / 60)
		p.sent(p.seq, bytes, now)
		if p.inFlight.Push(p.now, p.seq, bytes) == 0 {
			p.dropped++
		}
		p.seq++
		sum += p.rate
		ticks++
	}
	return sum / float64(ticks) / 1000
}

// receive delivers messages to the client, and its acks to the controller.
func (p *path) receive() {
	for {
		n, at, ok := p.inFlight.Pop(p.now)
		if !ok {
			break
		}
		p.received[n] = true
		if len(p.received) == 1 || int16(n-p.newest) > 0 {
			p.newest = n
		}
		if at-p.lastAck < time.Second/30 {
			continue
		}
		p.lastAck = at
		window := uint64(0)
		for i := range uint16(ackWindow - 1) {
			if p.received[p.newest-1-i] {
				window |= 1 << i
			}
		}
		delete(p.received, p.newest-200)
		p.acks.Push(at, [2]uint64{uint64(p.newest), window}, 60)
	}
	for {
		a, at, ok := p.acks.Pop(p.now)
		if !ok {
			return
		}
		p.acked(uint16(a[0]), a[1], p.start.Add(at))
	}
}

// TestRateCapacity checks that the rate settles near the capacity of a link.
func TestRateCapacity(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		link    simnet.Config
		minimum float64 // mean rate, as a share of the capacity
	}{
		"clean":  {simnet.Config{Delay: 50 * ms}, 0.7},
		"near":   {simnet.Config{Delay: 5 * ms, Jitter: 2 * ms}, 0.7},
		"far":    {simnet.Config{Delay: 150 * ms, Jitter: 10 * ms}, 0.7},
		"lossy":  {simnet.Config{Delay: 50 * ms, Jitter: 8 * ms, Loss: 0.05}, 0.7},
		"jitter": {simnet.Config{Delay: 50 * ms, Jitter: 20 * ms, Loss: 0.02}, 0.25}, // which hides a queue
	} {
		for _, kbits := range []float64{100, 250, 600} {
			c.link.Rate = int(1000 * kbits / 8)
			p := newPath(t, 32_000, 1_000_000, c.link)
			p.run(20 * time.Second)
			dropped, sent := p.dropped, p.seq
			got := p.run(40 * time.Second)
			loss := float64(p.dropped-dropped) / float64(p.seq-sent)
			if got < c.minimum*kbits || got > 1.05*kbits || loss > c.link.Loss+0.04 {
				t.Errorf("%s: %.0f of %.0f kbit/s, %.3f lost", name, got, kbits, loss)
			}
		}
	}
}

// TestRateLoss checks that loss below a tenth does not lower the rate, as on a radio link, but that
// more does.
func TestRateLoss(t *testing.T) {
	for loss, limits := range map[float64][2]float64{0: {900, 1000}, 0.05: {850, 1000}, 0.2: {32, 700}, 0.4: {32, 250}} {
		p := newPath(t, 32_000, 1_000_000, simnet.Config{Delay: 50 * time.Millisecond, Jitter: 8 * time.Millisecond, Loss: loss})
		p.run(20 * time.Second)
		if got := p.run(40 * time.Second); got < limits[0] || got > limits[1] {
			t.Errorf("loss %v: %.0f kbit/s, want %v", loss, got, limits)
		}
	}
}

// TestRateChanges checks that the rate follows a link that becomes slower, faster, and is
// interrupted.
func TestRateChanges(t *testing.T) {
	link := simnet.Config{Delay: 50 * time.Millisecond, Jitter: 4 * time.Millisecond}
	link.Rate = 75_000
	p := newPath(t, 32_000, 1_000_000, link)
	for _, c := range []struct {
		rate   int // bytes per second
		loss   float64
		after  time.Duration
		limits [2]float64 // kbit/s
	}{
		{75_000, 0, 20 * time.Second, [2]float64{400, 620}},
		{12_500, 0, 8 * time.Second, [2]float64{60, 120}},
		{75_000, 0, 12 * time.Second, [2]float64{400, 620}},
		{75_000, 1, 6 * time.Second, [2]float64{32, 40}},
		{75_000, 0, 10 * time.Second, [2]float64{350, 620}},
	} {
		link.Rate, link.Loss = c.rate, c.loss
		must(t, p.down.Set(link))
		p.run(c.after)
		if got := p.run(2 * time.Second); got < c.limits[0] || got > c.limits[1] {
			t.Errorf("%d bytes/s, loss %v: %.0f kbit/s after %v, want %v", c.rate, c.loss, got, c.after, c.limits)
		}
	}
}

// TestRateUsage checks that the rate does not grow while it is not used, and that new limits apply.
func TestRateUsage(t *testing.T) {
	p := newPath(t, 32_000, 1_000_000, simnet.Config{Delay: 50 * time.Millisecond})
	p.usage = 0.5
	if got := p.run(20 * time.Second); got > 33 {
		t.Errorf("%.0f kbit/s", got)
	}
	p.usage = 1
	p.run(5 * time.Second)
	if got := p.run(time.Second); got < 990 {
		t.Errorf("%.0f kbit/s once it is used", got)
	}
	if p.limit(32_000, 300_000); p.rate != 300_000 {
		t.Errorf("%v with new limits", p.rate)
	}
	p.limit(0, 500_000)
	if p.run(time.Second); p.rate != 500_000 {
		t.Errorf("%v without rate control", p.rate)
	}
}
