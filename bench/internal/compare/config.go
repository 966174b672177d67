package compare

import (
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/lab/bench"
	"github.com/uplink-rpc/uplink/internal/lab/simlink"
	"github.com/uplink-rpc/uplink/rpcdelta"
)

// Config says what to compare at. Zero fields mean the defaults.
type Config struct {
	// Losses are the shares of packets lost, each way, the first of them 0; default 0 to 20 %.
	Losses []float64
	// TimedLoss is the share at which times are measured.
	TimedLoss float64
	// Frames is how many frames of a trace are used, the first half of them to train; default all.
	Frames int
	// Untimed leaves out the times.
	Untimed bool
	// Progress, if set, is called for each scheme that is about to be run.
	Progress func(trace, scheme string)
}

// The link of all runs, but for its loss.
const (
	roundTrip = 100 * time.Millisecond
	seed      = 1
)

// link is the link of a run. Acks are as frequent as a server's are if its config does not say.
func (c *Config) link(loss float64) bench.Config {
	return bench.Config{
		Link:    simlink.Config{RTT: roundTrip, Loss: loss, Burst: 1, Seed: seed},
		AckHz:   ds.DefaultAckHz,
		Ring:    rpcdelta.DefaultRing,
		Untimed: c.Untimed,
	}
}

// MinFrames is the least number of frames that a comparison makes sense with.
const MinFrames = 1000

func (c *Config) fill() {
	if c.Losses == nil {
		c.Losses = []float64{0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2}
	}
	if c.Progress == nil {
		c.Progress = func(string, string) {}
	}
}
