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
