package live

import (
	"errors"
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/examples/cubes/game"
	"github.com/uplink-rpc/uplink/examples/cubes/session"
	"github.com/uplink-rpc/uplink/examples/cubes/way"
)

// Settings are what a visitor changes.
type Settings struct {
	Way string `json:"way"`
	// Rate is how many messages a second leave; Budget how many kbit a second they may take, 0 for no limit.
	Rate   int `json:"rate"`
	Budget int `json:"budget"`
	// Loss is a share, RTT and Jitter are milliseconds, as session.Link has them.
	Loss   float64 `json:"loss"`
	RTT    float64 `json:"rtt"`
	Jitter float64 `json:"jitter"`
	// Delta, Round and Smooth are what state synchronization does beside its core; see way.Options.
	Delta  bool `json:"delta"`
	Round  bool `json:"round"`
	Smooth bool `json:"smooth"`
	// Auto has a script play.
	Auto bool `json:"auto"`
}

// Default is how it begins: the article's link, and its budget.
func Default() Settings {
	return Settings{Way: way.Snapshots.String(), Rate: 60, Budget: 256, Loss: 0.05, RTT: 100, Jitter: 33, Delta: true, Round: true, Smooth: true, Auto: true}
}

// Limits of settings.
const (
	MaxBudget = 4096
	MaxLoss   = 0.5
	MaxRTT    = 1000
	MaxJitter = 200
)

// check says which setting is wrong, and what it may be.
func (s *Settings) check() error {
	_, err := way.Parse(s.Way)
	if s.Rate < 1 || game.Rate%s.Rate != 0 {
		err = errors.Join(err, fmt.Errorf("rate is %d: want a divisor of %d", s.Rate, game.Rate))
	}
	return errors.Join(err, within("budget", float64(s.Budget), MaxBudget), within("loss", s.Loss, MaxLoss),
		within("rtt", s.RTT, MaxRTT), within("jitter", s.Jitter, MaxJitter))
}

func within(name string, v, most float64) error {
	if !(v >= 0 && v <= most) {
		return fmt.Errorf("%s is %g: want 0 to %g", name, v, most)
	}
	return nil
}

// link gives the link's part.
func (s *Settings) link() session.Link {
	ms := func(v float64) time.Duration { return time.Duration(v * float64(time.Millisecond)) }
	return session.Link{RTT: ms(s.RTT), Jitter: ms(s.Jitter), Loss: s.Loss}
}

// options gives the way's part.
func (s *Settings) options() way.Options {
	return way.Options{
		Rate: s.Rate, Budget: s.Budget * 1000, Jitter: s.link().Jitter, Loss: s.Loss,
		NoDelta: !s.Delta, NoRound: !s.Round, NoSmooth: !s.Smooth,
	}
}
