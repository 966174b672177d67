// Package world simulates rigid cubes on a plane with ODE, a physics engine in C. Cube 0 is the
// player's: it is larger, and an [Input] moves it. The package also defines the state that server
// and client exchange, and a script that plays by itself.
package world

/*
#cgo LDFLAGS: -lode -lm
#include "engine.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"
)

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
// values. The engine's other state is unchanged: for how many steps the cube has been slow.
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
