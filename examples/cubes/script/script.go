// Package script plays the game by itself: inputs that depend on a seed alone.
package script

import (
	"math/rand/v2"

	"github.com/uplink-rpc/uplink/examples/cubes/world"
)

// Script steers towards one place after another, and pulls and pushes by turns.
type Script struct {
	random *rand.Rand
	target [2]float64
	keys   world.Input
	decide int // ticks until the next decision
	mode   world.Input
	change int // ticks until the next mode
	reach  float64
}

const (
	// Reach is how far from the middle the script goes by default, in meters.
	Reach = 12
	// The first ticks have no input: the player falls.
	still = 30
)

// New makes the script of a seed, that goes up to reach meters away from the middle.
func New(seed uint64, reach float64) *Script {
	return &Script{random: rand.New(rand.NewPCG(seed, 0x6375626573)), reach: reach, decide: still, change: still}
}

// Next gives the input of the next tick, for a player at that position.
func (s *Script) Next(position [3]float64) world.Input {
	if s.change--; s.change < 0 {
		s.change = 120 + s.random.IntN(240)
		s.mode = [...]world.Input{0, 0, world.Pull, world.Push}[s.random.IntN(4)]
	}
	if s.decide--; s.decide >= 0 {
		return s.keys
	}
	s.decide = 5 + s.random.IntN(20)
	x, y := s.target[0]-position[0], s.target[1]-position[1]
	if x*x+y*y < 4 || s.random.IntN(8) == 0 {
		s.target = [2]float64{s.reach * (2*s.random.Float64() - 1), s.reach * (2*s.random.Float64() - 1)}
	}
	s.keys = s.mode | toward(x, world.Left, world.Right) | toward(y, world.Down, world.Up)
	return s.keys
}

// toward gives the key that goes the way of d, or none where it is near.
func toward(d float64, less, more world.Input) world.Input {
	switch {
	case d < -1:
		return less
	case d > 1:
		return more
	}
	return 0
}
