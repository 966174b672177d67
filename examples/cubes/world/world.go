// Package world simulates rigid cubes on a plane with ODE, a physics engine in C. One of them is the player's: larger,
// and moved by an [Input].
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

// engine is held by whoever calls ODE, which has one random number generator for all worlds.
var engine sync.Mutex

// World is one simulation. It is a function of its Params and of what was done to it, for one build of ODE. Its methods
// are not safe for concurrent use; different worlds are.
type World struct {
	c     *C.cubes_world
	count int
}

// Body is the state of one cube, in meters and seconds.
type Body struct {
	Position [3]float64
	// Orientation is x, y, z, w.
	Orientation [4]float64
	// Linear velocity is that of the center, Angular in world axes and radians.
	Linear, Angular [3]float64
	moving          uint32
	interacting     uint32
}

// Moving says that the body does not rest.
func (b *Body) Moving() bool { return b.moving != 0 }

// Interacting says that the player has moved it lately, by itself or by others.
func (b *Body) Interacting() bool { return b.interacting != 0 }

// Mark sets what Moving and Interacting say.
func (b *Body) Mark(moving, interacting bool) {
	b.moving, b.interacting = 0, 0
	if moving {
		b.moving = 1
	}
	if interacting {
		b.interacting = 1
	}
}

// New makes a world in which nothing has moved yet: cubes lie in a square, and the player's is about to fall onto them.
// The error names the parameter that is out of its bounds.
func New(p Params) (*World, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if unsafe.Sizeof(p) != C.sizeof_cubes_params || unsafe.Sizeof(Body{}) != C.sizeof_cubes_body {
		panic("world: Go's types are not C's")
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

// Count is the number of cubes. Number 0 is the player's.
func (w *World) Count() int { return w.count }

// Step simulates one step of Params.Step. The tick chooses in which order the solver takes constraints: two worlds that
// are to do the same have the same ticks.
func (w *World) Step(in Input, tick uint32) {
	engine.Lock()
	defer engine.Unlock()
	C.cubes_step(w.c, C.uint32_t(in), C.uint32_t(tick))
	runtime.KeepAlive(w)
}

// Bodies fills bodies with the state of all cubes. It has room for Count.
func (w *World) Bodies(bodies []Body) {
	_ = bodies[w.count-1]
	engine.Lock()
	defer engine.Unlock()
	C.cubes_get(w.c, (*C.cubes_body)(unsafe.Pointer(&bodies[0])))
	runtime.KeepAlive(w)
}

// Set replaces the state of one cube: it moves or rests then as the body says.
func (w *World) Set(i int, b *Body) {
	w.check(i)
	engine.Lock()
	defer engine.Unlock()
	C.cubes_set(w.c, C.int(i), (*C.cubes_body)(unsafe.Pointer(b)))
	runtime.KeepAlive(w)
}

// Nudge replaces position, orientation and velocities of a cube that moves by others that are nearly the same, and
// leaves alone what else the engine knows of it: since when it has been slow.
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
