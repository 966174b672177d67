package jitter

import "time"

const (
	// MaxPace is the most by which a clock is to run faster or slower, as a share: little enough to be felt by nobody.
	MaxPace = 0.02
	// settle is the time in which a clock that follows makes up for a difference, but for 1/e of it. It is more than
	// three times what passes until an effect is seen, the average of a block included, over a round trip of 300 ms: so
	// the slack does not overshoot.
	settle = 3 * time.Second
	// stale is the age at which what was told no longer counts.
	stale = 2 * time.Second
)

// Rate is how fast a clock is to run, 1 being its usual speed, so that slack comes to its target: within MaxPace of 1.
func Rate(slack, target time.Duration) float64 {
	short := float64(target-slack) / float64(settle)
	return 1 + max(-MaxPace, min(short, MaxPace))
}

// Pacer has a sender's clock follow what the receiver tells of its buffer. The zero value is ready, and runs at 1. It is
// not safe for concurrent use.
type Pacer struct {
	told time.Duration
	rate float64 // 0 before anything was told
}

// Told takes slack and target as the receiver told them, now.
func (p *Pacer) Told(now, slack, target time.Duration) { p.told, p.rate = now, Rate(slack, target) }

// Rate is how fast the clock is to run now: as the last call of Told says for two seconds, then 1.
func (p *Pacer) Rate(now time.Duration) float64 {
	if p.rate == 0 || now-p.told > stale {
		return 1
	}
	return p.rate
}
