package load

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/meter"
)

// pacer makes the calls of bots, once per period and at a phase of its own for each bot. It uses
// one goroutine, because a timer for each bot would cost more than the calls. Due times are counted
// from a fixed origin, so that they do not drift.
type pacer struct {
	origin  time.Time
	rate    float64
	late    *meter.Durations // delay of each call
	skipped atomic.Uint64

	mu     sync.Mutex
	joined []*Bot
	wake   chan struct{} // holds a token if a bot has joined

	// Used only by run:
	ring  []*Bot // bots by phase
	at    int    // index in ring of the next bot
	cycle int64  // number of the current period
}

func newPacer(origin time.Time, rate float64) *pacer {
	return &pacer{origin: origin, rate: rate, late: meter.NewDurations(), wake: make(chan struct{}, 1)}
}

func (p *pacer) add(b *Bot) {
	p.mu.Lock()
	p.joined = append(p.joined, b)
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *pacer) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		wait, any := p.callDue()
		if !any {
			timer.Stop()
		} else {
			timer.Reset(wait)
		}
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
			p.admit(time.Now())
		case <-timer.C:
		}
	}
}

// callDue makes the calls that are due, at most those of one period, and returns the time until the
// next call.
func (p *pacer) callDue() (wait time.Duration, any bool) {
	for range len(p.ring) {
		b := p.ring[p.at]
		due := p.due(b)
		now := time.Now()
		late := now.Sub(due)
		if late < 0 {
			return -late, true
		}
		if p.call(b, due, late) {
			p.at++
		} else {
			p.ring = slices.Delete(p.ring, p.at, p.at+1)
		}
		if p.at >= len(p.ring) {
			p.at = 0
			p.cycle++
		}
	}
	return 0, len(p.ring) > 0
}

func (p *pacer) due(b *Bot) time.Time {
	return p.origin.Add(time.Duration(float64(p.cycle)/p.rate*float64(time.Second)) + b.phase)
}

// call makes a call, unless it is late by a whole period: two calls at once would change the load.
func (p *pacer) call(b *Bot, due time.Time, late time.Duration) bool {
	if due.Before(b.since) {
		return true
	}
	p.late.Add(late)
	if late.Seconds()*p.rate >= 1 {
		p.skipped.Add(1)
		return true
	}
	return b.turn()
}

// admit adds the bots that have joined. The first call of each is at its phase of the period.
func (p *pacer) admit(now time.Time) {
	p.mu.Lock()
	joined := p.joined
	p.joined = nil
	p.mu.Unlock()
	for _, b := range joined {
		if len(p.ring) == 0 {
			p.cycle = int64(now.Sub(p.origin).Seconds() * p.rate)
			p.at = 0
		}
		i, _ := slices.BinarySearchFunc(p.ring, b, func(a, b *Bot) int { return cmp.Compare(a.phase, b.phase) })
		p.ring = slices.Insert(p.ring, i, b)
		if i < p.at {
			p.at++
		}
	}
}
