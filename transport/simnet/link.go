// Package simnet simulates links: loss in bursts or not, delay, jitter, duplication, reordering, a
// bottleneck. A simulation is a function of its [Config], whose Seed is part of it.
//
// [Link] and [Queue] work in virtual time and know nothing of sockets or goroutines. [Network] is a
// whole network in memory for the transport, which under testing/synctest runs in virtual time too.
// [Wrap] puts a simulated link in front of a real socket.
package simnet

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Config describes one direction of a link. The zero value is a perfect one.
type Config struct {
	// Delay is the least time that a packet takes, one way.
	Delay time.Duration
	// Jitter is the mean of a further delay, drawn for each packet from an exponential distribution
	// that is cut at four times the mean: mostly short, sometimes long, as queues make it. Packets
	// overtake one another by it.
	Jitter time.Duration
	// Loss is the share of packets that are lost, 0 to 1.
	Loss float64
	// Burst is the mean number of packets that are lost in a row. Up to 1/(1-Loss), which
	// independent losses have by chance, losses are independent; above, a Gilbert-Elliott chain of two
	// states makes them.
	Burst float64
	// Duplicate is the share of packets that arrive twice, 0 to 1.
	Duplicate float64
	// Rate is what the link carries, in bytes a second; 0 means no limit. Packets wait in a queue for
	// their turn, and are dropped when they would have to wait for more than a quarter of a second.
	Rate int
	// MTU is the size of the largest packet that passes, in bytes, headers down to IP included; 0 means no
	// limit. Longer ones are lost.
	MTU int
	// Seed selects one of the possible courses of events.
	Seed uint64
}

// Validate returns an error that names the field whose value makes no sense, or nil.
func (c Config) Validate() error {
	switch {
	case c.Delay < 0:
		return fmt.Errorf("simnet: Config.Delay is %v, must not be negative", c.Delay)
	case c.Jitter < 0:
		return fmt.Errorf("simnet: Config.Jitter is %v, must not be negative", c.Jitter)
	case !isShare(c.Loss):
		return fmt.Errorf("simnet: Config.Loss is %v, must be from 0 to 1", c.Loss)
	case !(c.Burst >= 0) || math.IsInf(c.Burst, 1):
		return fmt.Errorf("simnet: Config.Burst is %v, must be 0 or a number of packets", c.Burst)
	case !isShare(c.Duplicate):
		return fmt.Errorf("simnet: Config.Duplicate is %v, must be from 0 to 1", c.Duplicate)
	case c.MTU < 0:
		return fmt.Errorf("simnet: Config.MTU is %v, must not be negative", c.MTU)
	case c.Rate < 0:
		return fmt.Errorf("simnet: Config.Rate is %v, must not be negative", c.Rate)
	}
	return nil
}

// isShare is false for a NaN.
func isShare(x float64) bool { return x >= 0 && x <= 1 }

// bursty reports whether losses come in longer bursts than by chance.
func (c Config) bursty() bool {
	return c.Loss > 0 && c.Loss < 1 && c.Burst > 1/(1-c.Loss)
}

const (
	maxQueue   = 250 * time.Millisecond // of the bottleneck
	jitterCut  = 4                      // times the mean
	seedStream = 0x9e3779b97f4a7c15
)

// Link is one direction of a simulated link. Times are durations since any start, the same for all
// calls. It draws the same number of random numbers for each packet, whatever its size and the
// configuration: two links with one seed lose the same packets. It is not safe for concurrent use.
type Link struct {
	cfg  Config
	rng  *rand.Rand
	bad  bool          // in the chain's state that loses all
	free time.Duration // when the bottleneck has sent all that it holds
	last time.Duration // when the packet before arrives without its jitter
}

// NewLink returns a link, or the error of [Config.Validate].
func NewLink(cfg Config) (*Link, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Link{cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, seedStream))}, nil
}

// Config returns the configuration in force.
func (l *Link) Config() Config { return l.cfg }

// Set changes the link from the next packet on, or returns the error of [Config.Validate]. Nothing is lost
// or reordered by the change itself: behind a longer delay or queue, which are no more, packets wait until
// those before them are through. Seed has no effect any more.
func (l *Link) Set(cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	l.cfg = cfg
	return nil
}

// Send sends a packet of so many bytes, headers included, at now, and appends the times at which its
// copies arrive: none if it is lost, two if it is duplicated. Packets are sent in order of time.
func (l *Link) Send(dst []time.Duration, now time.Duration, size int) []time.Duration {
	lost := l.lose(l.rng.Float64())
	twice := l.rng.Float64() < l.cfg.Duplicate
	first, second := l.jitter(), l.jitter()
	if l.cfg.MTU != 0 && size > l.cfg.MTU {
		return dst
	}
	departs, ok := l.depart(now, size)
	if lost || !ok {
		return dst
	}
	l.last = max(l.last, departs+l.cfg.Delay)
	dst = append(dst, l.last+first)
	if twice {
		dst = append(dst, l.last+second)
	}
	return dst
}

// lose decides the fate of one packet by a number from [0, 1). In the chain each packet moves the
// state first; the chances to leave the states give bursts their mean length and losses their share.
func (l *Link) lose(x float64) bool {
	if !l.cfg.bursty() {
		l.bad = false
		return x < l.cfg.Loss
	}
	leave := 1 / l.cfg.Burst
	if l.bad {
		l.bad = x >= leave
	} else {
		l.bad = x < leave*l.cfg.Loss/(1-l.cfg.Loss)
	}
	return l.bad
}

// jitter draws one packet's further delay.
func (l *Link) jitter() time.Duration {
	x := -math.Log(1 - l.rng.Float64())
	return time.Duration(min(x, jitterCut) * float64(l.cfg.Jitter))
}

// depart returns when a packet has passed the bottleneck, or false if its queue is full.
func (l *Link) depart(now time.Duration, size int) (time.Duration, bool) {
	if l.cfg.Rate == 0 {
		return now, true
	}
	start := max(now, l.free)
	if start-now > maxQueue {
		return 0, false
	}
	l.free = start + time.Duration(float64(size)/float64(l.cfg.Rate)*float64(time.Second))
	return l.free, true
}
