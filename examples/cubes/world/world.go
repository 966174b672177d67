// Package world simulates rigid cubes on a plane with ODE, a physics engine in C. Cube 0 is the
// player's: it is larger, and an [Input] moves it. The package also defines the state that server
// and client exchange, and a script that plays by itself.
package world

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"unsafe"
)

/*
#cgo LDFLAGS: -lode -lm
#include "engine.h"
*/
import "C"

// engine serializes all calls of ODE, which has one random number generator for all worlds.
var engine sync.Mutex

// Input is the set of keys that the player holds.
type Input uint8

// The keys.
const (
	Left Input = 1 << iota
	Right
	Up
	Down
	// Push makes the player hover and blow other cubes away.
	Push
	// Pull gathers other cubes around the player.
	Pull

	// Keys is the set of all keys.
	Keys = Left | Right | Up | Down | Push | Pull
)

// World is one simulation. With one build of ODE it is deterministic: the same Params and the same
// calls produce the same states. A World is not safe for concurrent use; different worlds may run
// concurrently.
type World struct {
	c     *C.cubes_world
	count int
}

// Body is the state of one cube, in meters and seconds.
type Body struct {
	Position [3]float64
	// Orientation is x, y, z, w.
	Orientation [4]float64
	// Linear is the velocity of the center in m/s, Angular the angular velocity in world axes in
	// rad/s.
	Linear, Angular [3]float64
	moving          uint32
	interacting     uint32
}

// Moving reports whether the body is not at rest.
func (b *Body) Moving() bool { return b.moving != 0 }

// Interacting reports whether the player moved the body recently, directly or through other cubes.
func (b *Body) Interacting() bool { return b.interacting != 0 }

// Mark sets the results of Moving and Interacting.
func (b *Body) Mark(moving, interacting bool) {
	b.moving, b.interacting = 0, 0
	if moving {
		b.moving = 1
	}
	if interacting {
		b.interacting = 1
	}
}

// New returns a world in its initial state: the cubes lie in a square at rest, and the player's
// cube is above them. The error names the parameter that is out of bounds.
func New(p Params) (*World, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if unsafe.Sizeof(p) != C.sizeof_cubes_params || unsafe.Sizeof(Body{}) != C.sizeof_cubes_body {
		panic("world: layouts of the Go and C types differ")
	}
	engine.Lock()
	defer engine.Unlock()
	c := C.cubes_new((*C.cubes_params)(unsafe.Pointer(&p)))
	if c == nil {
		return nil, errors.New("world: no memory")
	}
	w := &World{c: c, count: p.Count()}
	runtime.AddCleanup(w, release, c)
	return w, nil
}

func release(c *C.cubes_world) {
	engine.Lock()
	defer engine.Unlock()
	C.cubes_free(c)
}

// Count returns the number of cubes, including the player's.
func (w *World) Count() int { return w.count }

// Step simulates one step of Params.Step seconds. The tick seeds the order in which the solver
// handles constraints: two worlds produce the same states only if they are stepped with the same
// ticks.
func (w *World) Step(in Input, tick uint32) {
	engine.Lock()
	defer engine.Unlock()
	C.cubes_step(w.c, C.uint32_t(in), C.uint32_t(tick))
	runtime.KeepAlive(w)
}

// Bodies copies the state of all cubes to bodies, which has at least Count elements.
func (w *World) Bodies(bodies []Body) {
	_ = bodies[w.count-1]
	engine.Lock()
	defer engine.Unlock()
	C.cubes_get(w.c, (*C.cubes_body)(unsafe.Pointer(&bodies[0])))
	runtime.KeepAlive(w)
}

// Set replaces the state of cube i, including whether it moves or rests.
func (w *World) Set(i int, b *Body) {
	w.check(i)
	engine.Lock()
	defer engine.Unlock()
	C.cubes_set(w.c, C.int(i), (*C.cubes_body)(unsafe.Pointer(b)))
	runtime.KeepAlive(w)
}

// Nudge replaces position, orientation and velocities of cube i, which moves, by nearly the same
// values. The engine's other state is unchanged: the number of steps for which the cube has been
// slow.
func (w *World) Nudge(i int, b *Body) {
	w.check(i)
	engine.Lock()
	defer engine.Unlock()
	C.cubes_round(w.c, C.int(i), (*C.cubes_body)(unsafe.Pointer(b)))
	runtime.KeepAlive(w)
}

func (w *World) check(i int) {
	if i < 0 || i >= w.count {
		panic(fmt.Sprintf("world: cube %d of %d", i, w.count))
	}
}

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
