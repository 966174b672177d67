package world

import (
	"math/rand/v2"
)

// Script generates inputs from a seed and the position of the player. It steers towards one random
// target after another, and pulls and pushes in between.
type Script struct {
	random *rand.Rand
	target [2]float64
	keys   Input
	decide int // ticks until the next decision
	mode   Input
	change int // ticks until the next mode
	reach  float64
}

const (
	// ScriptReach is the default maximum distance of targets from the origin along each axis, in
	// meters.
	ScriptReach = 12
	// scriptDelay is the number of ticks without input at the start, while the player falls.
	scriptDelay = 30
)

// NewScript returns the script of a seed. Targets are up to reach meters from the origin along each
// axis.
func NewScript(seed uint64, reach float64) *Script {
	return &Script{random: rand.New(rand.NewPCG(seed, 0x6375626573)), reach: reach, decide: scriptDelay, change: scriptDelay}
}

// Next returns the input of the next tick for a player at position.
func (s *Script) Next(position [3]float64) Input {
	if s.change--; s.change < 0 {
		s.change = 120 + s.random.IntN(240)
		s.mode = [...]Input{0, 0, Pull, Push}[s.random.IntN(4)]
	}
	if s.decide--; s.decide >= 0 {
		return s.keys
	}
	s.decide = 5 + s.random.IntN(20)
	x, y := s.target[0]-position[0], s.target[1]-position[1]
	if x*x+y*y < 4 || s.random.IntN(8) == 0 {
		s.target = [2]float64{s.reach * (2*s.random.Float64() - 1), s.reach * (2*s.random.Float64() - 1)}
	}
	s.keys = s.mode | toward(x, Left, Right) | toward(y, Down, Up)
	return s.keys
}

// toward returns the key that moves in the direction of d, or 0 if d is within 1 m.
func toward(d float64, negative, positive Input) Input {
	switch {
	case d < -1:
		return negative
	case d > 1:
		return positive
	}
	return 0
}
