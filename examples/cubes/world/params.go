package world

import (
	"errors"
	"fmt"
)

// Params are the parameters of a world, in meters, seconds and kilograms. The layout equals that of
// cubes_params in engine.h.
type Params struct {
	// Step is the simulated time of one World.Step.
	Step float64
	// Gravity is the downward acceleration. Friction and Bounce (0 to 1) apply to all contacts.
	Gravity, Friction, Bounce float64
	// Spacing is the initial distance between the centers of cubes. Size and PlayerSize are edge
	// lengths.
	Spacing, Size, PlayerSize, Density float64
	// Roll is the acceleration of the player, Drag the fraction of its speed that it loses per
	// second.
	Roll, Drag float64
	// Hover is the height at which the player floats while it pushes. Cubes within PushRadius of
	// the point below it are accelerated by up to Push.
	Hover, PushRadius, Push float64
	// Cubes within PullRadius of the player are accelerated towards it by Pull while it pulls.
	PullRadius, Pull float64
	// Bound is the distance of the walls from the origin along each axis.
	Bound float64
	// MaxSpeed is the maximum of each component of the linear and the angular velocity.
	MaxSpeed float64
	// Side is the number of cubes in a row of the square, and the number of rows.
	Side int64
}

// Default returns the parameters of the articles' world: 901 cubes at 60 Hz.
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

// MaxSide is the maximum of Params.Side.
const MaxSide = 60

// Count returns the number of cubes, including the player's.
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
