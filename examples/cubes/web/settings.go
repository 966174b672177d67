package web

import (
	"errors"
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/examples/cubes/world"

	"github.com/uplink-rpc/uplink/examples/cubes/session"
)

// Settings are the properties of the session and the link that viewers can change.
type Settings struct {
	Mode string `json:"way"`
	// Rate is the maximum number of messages per second, Budget the maximum bandwidth in kbit/s. A
	// Budget of 0 means no limit.
	Rate   int `json:"rate"`
	Budget int `json:"budget"`
	// Loss is a fraction; RTT and Jitter are in milliseconds. See session.Link.
	Loss   float64 `json:"loss"`
	RTT    float64 `json:"rtt"`
	Jitter float64 `json:"jitter"`
	// Delta, Round and Smooth enable parts of state synchronization; see session.Options.
	Delta  bool `json:"delta"`
	Round  bool `json:"round"`
	Smooth bool `json:"smooth"`
	// Auto lets the script play.
	Auto bool `json:"auto"`
}

// DefaultSettings returns the initial settings: the link and the budget of the articles.
func DefaultSettings() Settings {
	return Settings{Mode: session.ModeSnapshots.String(), Rate: 60, Budget: 256, Loss: 0.05, RTT: 100, Jitter: 33, Delta: true, Round: true, Smooth: true, Auto: true}
}

// Maximum values of settings, in the units of Settings.
const (
	MaxBudget = 4096
	MaxLoss   = 0.5
	MaxRTT    = 1000
	MaxJitter = 200
)

// check returns an error that names each invalid setting and its range.
func (s *Settings) check() error {
	_, err := session.ParseMode(s.Mode)
	if s.Rate < 1 || world.TickRate%s.Rate != 0 {
		err = errors.Join(err, fmt.Errorf("rate is %d: want a divisor of %d", s.Rate, world.TickRate))
	}
	return errors.Join(err, within("budget", float64(s.Budget), MaxBudget), within("loss", s.Loss, MaxLoss),
		within("rtt", s.RTT, MaxRTT), within("jitter", s.Jitter, MaxJitter))
}

func within(name string, v, limit float64) error {
	if !(v >= 0 && v <= limit) {
		return fmt.Errorf("%s is %g: want 0 to %g", name, v, limit)
	}
	return nil
}

// link returns the settings of the link.
func (s *Settings) link() session.Link {
	ms := func(v float64) time.Duration { return time.Duration(v * float64(time.Millisecond)) }
	return session.Link{RTT: ms(s.RTT), Jitter: ms(s.Jitter), Loss: s.Loss}
}

// options returns the settings of the mode.
func (s *Settings) options() session.Options {
	return session.Options{
		Rate: s.Rate, Budget: s.Budget * 1000, Jitter: s.link().Jitter, Loss: s.Loss,
		NoDelta: !s.Delta, NoRound: !s.Round, NoSmooth: !s.Smooth,
	}
}
