package world

import (
	"errors"
	"fmt"
)

// Params are what a world is made of, in meters, seconds and kilograms. C has the same struct, field by field.
type Params struct {
	// Step is the time of one Step.
	Step float64
	// Gravity pulls down; Friction and Bounce are those of every contact, the latter 0 to 1.
	Gravity, Friction, Bounce float64
	// Spacing is between the centers of cubes of Size at first, PlayerSize is the size of the player's.
	Spacing, Size, PlayerSize, Density float64
	// Roll is how much the player accelerates, Drag the share of its speed that it loses a second.
	Roll, Drag float64
	// Hover is how high the player floats while it pushes; others nearer than PushRadius to the point below are
	// accelerated by up to Push.
	Hover, PushRadius, Push float64
	// Others that are nearer than PullRadius to the player while it pulls are accelerated by Pull.
	PullRadius, Pull float64
	// Bound is where walls stand, before and behind the middle.
	Bound float64
	// MaxSpeed bounds velocities by axis, and turning.
	MaxSpeed float64
	// Side is how many cubes lie in a row of the square, and how many rows there are.
	Side int64
}

// Default is the articles' world: 901 cubes at 60 Hz.
func Default() Params {
	return Params{
		Step:    1.0 / 60,
		Gravity: 20, Friction: 1.5, Bounce: 0.2,
		Spacing: 1, Size: 0.4, PlayerSize: 1.4, Density: 1,
		Roll: 45, Drag: 1.6,
		Hover: 2.2, PushRadius: 3, Push: 120,
		PullRadius: 1.9, Pull: 70,
		Bound:    31,
		MaxSpeed: 31,
		Side:     30,
	}
}

// MaxSide bounds Params.Side.
const MaxSide = 60

// Count is how many cubes there are, the player's included.
func (p *Params) Count() int { return int(1 + p.Side*p.Side) }

func (p *Params) check() error {
	positive := func(name string, v float64) error {
		if !(v > 0 && v < 1e6) {
			return fmt.Errorf("world: %s is %g: want a number above 0", name, v)
		}
		return nil
	}
	err := errors.Join(
		positive("Step", p.Step), positive("Gravity", p.Gravity), positive("Spacing", p.Spacing), positive("Size", p.Size),
		positive("PlayerSize", p.PlayerSize), positive("Density", p.Density), positive("Bound", p.Bound), positive("MaxSpeed", p.MaxSpeed),
	)
	switch {
	case err != nil:
	case p.Side < 0 || p.Side > MaxSide:
		err = fmt.Errorf("world: Side is %d: want 0 to %d", p.Side, MaxSide)
	case p.Spacing*float64(p.Side) > 2*p.Bound:
		err = fmt.Errorf("world: %d cubes with %g m between them do not lie within walls %g m apart", p.Side, p.Spacing, 2*p.Bound)
	}
	return err
}
