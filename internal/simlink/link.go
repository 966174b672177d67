// Package simlink configures the simulated link of the commands by flags.
package simlink

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/uplink-rpc/uplink/transport/simnet"
)

// Config is a link between a client and a server. Errors about it name the flags.
type Config struct {
	// RTT is the round-trip time without jitter, half of it in each direction.
	RTT time.Duration
	// Jitter is the mean additional delay of a packet in each direction. It reorders packets.
	Jitter time.Duration
	// Loss is the packet loss in each direction, 0 to 1.
	Loss float64
	// Burst is the mean length of a loss burst, in packets.
	Burst float64
	// Seed is the random seed of the simulated link.
	Seed uint64
}

// FlagNames are the names of the flags that AddFlags adds.
var FlagNames = []string{"rtt", "jitter", "loss", "burst", "seed"}

// AddFlags adds the flags of the link. Their defaults are the values of c.
func (c *Config) AddFlags(f *pflag.FlagSet) {
	f.DurationVar(&c.RTT, "rtt", c.RTT, "round-trip time of the simulated link")
	f.DurationVar(&c.Jitter, "jitter", c.Jitter, "mean additional delay of packets in each direction; it reorders them")
	f.Var((*share)(&c.Loss), "loss", "packet loss in each direction: 0.05 or 5%")
	f.Float64Var(&c.Burst, "burst", c.Burst, "mean length of a loss burst, in packets")
	f.Uint64Var(&c.Seed, "seed", c.Seed, "random seed of the simulated link")
}

// Bounds of a link's properties.
const (
	maxDelay = time.Minute
	maxBurst = 1_000_000
)

// Validate returns an error that names an invalid flag.
func (c *Config) Validate() error {
	switch {
	case c.RTT < 0 || c.RTT > maxDelay:
		return fmt.Errorf("--rtt %v: want 0s to %v", c.RTT, maxDelay)
	case c.Jitter < 0 || c.Jitter > maxDelay:
		return fmt.Errorf("--jitter %v: want 0s to %v", c.Jitter, maxDelay)
	case !(c.Loss >= 0 && c.Loss <= 1):
		return fmt.Errorf("--loss %v: want a share of 0 to 1", c.Loss)
	case !(c.Burst >= 1 && c.Burst <= maxBurst):
		return fmt.Errorf("--burst %v: want 1 to %d packets", c.Burst, maxBurst)
	}
	if err := c.Up().Validate(); err != nil {
		return fmt.Errorf("the link: %w", err)
	}
	return nil
}

// Perfect reports whether the link has no effect.
func (c *Config) Perfect() bool { return c.RTT == 0 && c.Jitter == 0 && c.Loss == 0 }

// String formats the properties without the seed.
func (c *Config) String() string {
	return fmt.Sprintf("RTT %v, jitter %v, loss %.3g %% in bursts of %g", c.RTT, c.Jitter, c.Loss*100, c.Burst)
}

// Drained returns the time after which nearly all packets have arrived.
func (c *Config) Drained() time.Duration { return c.RTT + 8*c.Jitter }

// Up returns the uplink.
func (c *Config) Up() simnet.Config {
	return simnet.Config{Delay: c.RTT / 2, Jitter: c.Jitter, Loss: c.Loss, Burst: c.Burst, Seed: c.Seed}
}

// Down returns the downlink, with another seed.
func (c *Config) Down() simnet.Config {
	d := c.Up()
	d.Delay = c.RTT - d.Delay
	d.Seed = ^c.Seed
	return d
}

// Network returns UDP behind the link, for the client. The error is that of Validate.
func (c *Config) Network() (*simnet.WrappedNetwork, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return simnet.WrapNetwork(nil, c.Up(), c.Down())
}

// share is a flag whose value is a fraction: 0.05 or 5%.
type share float64

func (s *share) String() string { return strconv.FormatFloat(float64(*s), 'g', -1, 64) }

func (s *share) Type() string { return "share" }

// Set implements pflag.Value.
func (s *share) Set(text string) error {
	v, err := ParseShare(text)
	if err == nil {
		*s = share(v)
	}
	return err
}

// ParseShare parses a fraction, 0 to 1: 0.05 or 5%.
func ParseShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return 0, errors.New("want 0 to 1, or a percentage such as 5%")
	}
	return v, nil
}
