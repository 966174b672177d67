package snapshot

import "fmt"

const (
	// Ring is how many snapshots both ends keep by default, and at most.
	Ring = 64
	// minRing is how many they keep at least.
	minRing = 16
	// defaultCheckEvery is the CheckEvery of a config that sets none: once a second at 60 snapshots a second.
	defaultCheckEvery = 60
)

// Config says what both ends keep. Zero fields mean the defaults.
type Config struct {
	// Ring is how many snapshots are kept, [minRing] to [Ring]; a decoder's must not be smaller than its encoder's. The
	// baseline is up to Ring - 13 snapshots old: where the round trip takes longer, each snapshot is coded against the
	// initial set. So 16 will do for 10 snapshots a second and round trips of up to 300 ms, 32 for 60 and 310 ms.
	Ring int
	// CheckEvery is after how many snapshots an encoder sends a hash of the baseline, 1 to 65,535, so that a
	// disagreement is found; default [defaultCheckEvery].
	CheckEvery int
}

func (c Config) withDefaults() (Config, error) {
	if c.Ring == 0 {
		c.Ring = Ring
	}
	if c.CheckEvery == 0 {
		c.CheckEvery = defaultCheckEvery
	}
	if c.Ring < minRing || c.Ring > Ring {
		return c, fmt.Errorf("snapshot: a ring of %d snapshots, want %d to %d", c.Ring, minRing, Ring)
	}
	if c.CheckEvery < 1 || c.CheckEvery > 1<<16-1 {
		return c, fmt.Errorf("snapshot: CheckEvery %d, want 1 to 65535", c.CheckEvery)
	}
	return c, nil
}
