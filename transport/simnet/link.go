// Package simnet simulates links: loss in bursts or not, delay, jitter, duplication, reordering, a
// bottleneck. The same [Config] and the same packets always give the same result; the random seed
// is part of the Config.
//
// [Link] and [Queue] use virtual time, and no sockets or goroutines. [Network] is a network in
// memory for the transport, which under testing/synctest uses virtual time too. [WrapNetwork] puts
// simulated links in front of a socket.
package simnet

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Config describes one direction of a link. The zero value is a perfect link.
type Config struct {
	// Delay is the minimum one-way delay.
	Delay time.Duration
	// Jitter is the mean of a further delay, drawn for each packet from an exponential distribution
	// truncated to four times the mean, like queueing delay. It reorders packets.
	Jitter time.Duration
	// Loss is the share of packets that are lost, 0 to 1.
	Loss float64
	// Burst is the mean length of loss bursts in packets. The bursts of independent losses have a
	// mean length of 1/(1-Loss). Up to this value of Burst, losses are independent; above it, they
	// follow a Gilbert-Elliott chain of two states.
	Burst float64
	// Duplicate is the share of packets that arrive twice, 0 to 1.
	Duplicate float64
	// Rate is the bandwidth in bytes per second; 0 means unlimited. Packets wait in a queue, and
	// are dropped if they would wait for more than a quarter of a second.
	Rate int
	// MTU is the maximum size of a packet in bytes, including headers down to IP; 0 means
	// unlimited. Larger packets are lost.
	MTU int
	// Seed is the random seed of the simulation.
	Seed uint64
}

// Validate returns an error that names the invalid field, or nil.
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

// bursty reports whether loss bursts are longer than those of independent losses.
func (c Config) bursty() bool {
	return c.Loss > 0 && c.Loss < 1 && c.Burst > 1/(1-c.Loss)
}

const (
	maxQueue   = 250 * time.Millisecond // maximum wait in the queue of the bottleneck
	jitterCut  = 4                      // times the mean
	seedStream = 0x9e3779b97f4a7c15
)

// Link is one direction of a simulated link. Times are durations since a start that the caller
// chooses once for all calls. It draws the same number of random numbers for each packet, whatever
// its size and the configuration: two links with one seed lose the same packets. It is not safe for
// concurrent use.
type Link struct {
	cfg  Config
	rng  *rand.Rand
	bad  bool          // the chain is in the state that loses packets
	last time.Duration // arrival of the previous packet without its jitter

	bottleneck *bottleneck
}

// bottleneck is the queue of a link or of several.
type bottleneck struct {
	free time.Duration // time at which the queue is empty
}

// NewLink returns a link, or the error of [Config.Validate].
func NewLink(cfg Config) (*Link, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Link{cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, seedStream)), bottleneck: &bottleneck{}}, nil
}

// Config returns the configuration in force.
func (l *Link) Config() Config { return l.cfg }

// Set changes the link from the next packet on, or returns the error of [Config.Validate]. The
// change itself neither loses nor reorders packets: if earlier packets had a longer delay or queue,
// later ones wait until these have arrived. The Seed of cfg is ignored.
func (l *Link) Set(cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	l.cfg = cfg
	return nil
}

// Send sends a packet of size bytes, headers included, at now, and appends the times at which its
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

// lose reports whether a packet is lost, by a random number from [0, 1). In the chain, each packet
// changes the state first; the probabilities of leaving the states follow from the mean length of
// bursts and the loss rate.
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

// jitter draws the jitter of a packet.
func (l *Link) jitter() time.Duration {
	x := -math.Log(1 - l.rng.Float64())
	return time.Duration(min(x, jitterCut) * float64(l.cfg.Jitter))
}

// depart returns when a packet has passed the bottleneck, or false if its queue is full.
func (l *Link) depart(now time.Duration, size int) (time.Duration, bool) {
	if l.cfg.Rate == 0 {
		return now, true
	}
	start := max(now, l.bottleneck.free)
	departs := start + time.Duration(float64(size)/float64(l.cfg.Rate)*float64(time.Second))
	if start-now > maxQueue {
		return 0, false
	}
	l.bottleneck.free = departs
	return departs, true
}
