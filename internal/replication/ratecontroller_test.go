package replication

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/transport/simnet"
)

// lane is a player's connection in virtual time: messages as large as the rateController allows go down a link, 60 a second, and
// acks come up, 30 a second.
type lane struct {
	t        testing.TB
	est      rateController
	down, up *simnet.Link
	start    time.Time
	now      time.Duration
	seq      uint16
	share    float64 // of the rate that is used
	messages *simnet.Queue[uint16]
	acks     *simnet.Queue[[2]uint64]
	held     map[uint16]bool
	newest   uint16
	anything bool
	lost     int // by the link, of those sent
	sent     int
	acked    time.Duration
	sum      float64 // of rates, over ticks
	ticks    int
}

func newLane(t testing.TB, least, most float64, cfg simnet.Config) *lane {
	t.Helper()
	cfg.Seed = rand.Uint64()
	t.Logf("link %+v", cfg)
	down, err := simnet.NewLink(cfg)
	must(t, err)
	up, err := simnet.NewLink(simnet.Config{Delay: cfg.Delay, Jitter: cfg.Jitter, Loss: cfg.Loss, Seed: cfg.Seed + 1})
	must(t, err)
	l := &lane{t: t, down: down, up: up, start: time.Unix(0, 0), share: 1, held: map[uint16]bool{}}
	l.messages, l.acks = simnet.NewQueue[uint16](down), simnet.NewQueue[[2]uint64](up)
	l.est.limit(least, most)
	return l
}

const laneTick = time.Second / 60

// run goes on for a time and gives the mean rate in it, in kbit/s.
func (l *lane) run(d time.Duration) float64 {
	l.sum, l.ticks = 0, 0
	for end := l.now + d; l.now < end; l.now += laneTick {
		l.receive()
		now := l.start.Add(l.now)
		l.est.step(now)
		bytes := int(l.share * l.est.rate / 8 / 60)
		l.est.sent(l.seq, bytes, now)
		if l.messages.Push(l.now, l.seq, bytes) == 0 {
			l.lost++
		}
		l.seq++
		l.sent++
		l.sum += l.est.rate
		l.ticks++
	}
	return l.sum / float64(l.ticks) / 1000
}

// receive is what the client does, and takes its acks.
func (l *lane) receive() {
	for {
		seq, at, ok := l.messages.Pop(l.now)
		if !ok {
			break
		}
		l.held[seq] = true
		if !l.anything || int16(seq-l.newest) > 0 {
			l.newest, l.anything = seq, true
		}
		if at-l.acked >= time.Second/30 {
			l.acked = at
			window := uint64(0)
			for i := range uint16(ackWindow - 1) {
				if l.held[l.newest-1-i] {
					window |= 1 << i
				}
			}
			delete(l.held, l.newest-200)
			l.acks.Push(at, [2]uint64{uint64(l.newest), window}, 60)
		}
	}
	for {
		a, at, ok := l.acks.Pop(l.now)
		if !ok {
			return
		}
		l.est.acked(uint16(a[0]), a[1], l.start.Add(at))
	}
}

// TestEstimateSettles near what the link carries, whatever else it does.
func TestEstimateSettles(t *testing.T) {
	const ms = time.Millisecond
	for name, cfg := range map[string]simnet.Config{
		"clean":  {Delay: 50 * ms},
		"near":   {Delay: 5 * ms, Jitter: 2 * ms},
		"far":    {Delay: 150 * ms, Jitter: 10 * ms},
		"lossy":  {Delay: 50 * ms, Jitter: 8 * ms, Loss: 0.05},
		"uneven": {Delay: 50 * ms, Jitter: 20 * ms, Loss: 0.02},
	} {
		for _, kbits := range []float64{100, 250, 600} {
			cfg.Rate = int(1000 * kbits / 8)
			l := newLane(t, 32_000, 1_000_000, cfg)
			l.run(20 * time.Second)
			lost, sent := l.lost, l.sent
			got := l.run(40 * time.Second)
			share := float64(l.lost-lost) / float64(l.sent-sent)
			least := 0.7
			if name == "uneven" { // what waits in a queue is hard to see there
				least = 0.25
			}
			if got < least*kbits || got > 1.05*kbits || share > cfg.Loss+0.04 {
				t.Errorf("%s: %.0f of %.0f kbit/s, %.3f lost", name, got, kbits, share)
			}
		}
	}
}

// TestEstimateLoss: loss of a radio's kind does not bring it down, loss of a tenth and more does.
func TestEstimateLoss(t *testing.T) {
	for loss, bounds := range map[float64][2]float64{0: {900, 1000}, 0.05: {850, 1000}, 0.2: {32, 700}, 0.4: {32, 250}} {
		l := newLane(t, 32_000, 1_000_000, simnet.Config{Delay: 50 * time.Millisecond, Jitter: 8 * time.Millisecond, Loss: loss})
		l.run(20 * time.Second)
		if got := l.run(40 * time.Second); got < bounds[0] || got > bounds[1] {
			t.Errorf("loss %v: %.0f kbit/s, want %v", loss, got, bounds)
		}
	}
}

// TestEstimateFollows a link that gets slower, faster, and is away for some time.
func TestEstimateFollows(t *testing.T) {
	link := simnet.Config{Delay: 50 * time.Millisecond, Jitter: 4 * time.Millisecond, Rate: 75_000}
	l := newLane(t, 32_000, 1_000_000, link)
	check := func(what string, after time.Duration, least, most float64) {
		t.Helper()
		l.run(after)
		if got := l.run(2 * time.Second); got < least || got > most {
			t.Errorf("%s: %.0f kbit/s after %v, want %v to %v", what, got, after, least, most)
		}
	}
	set := func(rate int, loss float64) {
		c := link
		c.Rate, c.Loss = rate, loss
		must(t, l.down.Set(c))
	}
	check("600 kbit/s", 20*time.Second, 400, 620)
	set(12_500, 0)
	check("100 kbit/s", 8*time.Second, 60, 120)
	set(75_000, 0)
	check("600 kbit/s again", 12*time.Second, 400, 620)
	set(75_000, 1)
	check("no link", 6*time.Second, 32, 40)
	set(75_000, 0)
	check("a link again", 10*time.Second, 350, 620)
}

// TestEstimateUnused: what is not used is not known to be there.
func TestEstimateUnused(t *testing.T) {
	l := newLane(t, 32_000, 1_000_000, simnet.Config{Delay: 50 * time.Millisecond})
	l.share = 0.5
	if got := l.run(20 * time.Second); got > 33 {
		t.Errorf("%.0f kbit/s", got)
	}
	l.share = 1
	l.run(5 * time.Second)
	if got := l.run(time.Second); got < 990 {
		t.Errorf("%.0f kbit/s once it is used", got)
	}
	l.est.limit(32_000, 300_000)
	if got := l.est.rate; got != 300_000 {
		t.Errorf("%v within new bounds", got)
	}
	l.est.limit(0, 500_000)
	if l.run(time.Second); l.est.rate != 500_000 {
		t.Errorf("%v where it is given", l.est.rate)
	}
}

// TestEstimateAllocatesNothing.
func TestEstimateAllocatesNothing(t *testing.T) {
	var e rateController
	e.limit(32_000, 1_000_000)
	now, seq := time.Unix(0, 0), uint16(0)
	if n := testing.AllocsPerRun(1000, func() {
		now = now.Add(laneTick)
		e.step(now)
		e.sent(seq, 500, now)
		e.acked(seq-3, 1<<63-1, now)
		seq++
	}); n != 0 {
		t.Errorf("%v allocations a message", n)
	}
}
