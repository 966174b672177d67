package world_test

import (
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/uplink-rpc/uplink/examples/cubes/world"
)

func small() world.Params {
	p := world.Default()
	p.Side = 8
	return p
}

func start(t *testing.T, p world.Params) (*world.World, []world.Body) {
	t.Helper()
	w, err := world.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return w, make([]world.Body, w.Count())
}

// play runs a script and returns the final bodies.
func play(t *testing.T, seed uint64, ticks int) []world.Body {
	t.Helper()
	w, bodies := start(t, small())
	w.Bodies(bodies)
	s := world.NewScript(seed, 4)
	for n := range ticks {
		w.Step(s.Next(bodies[0].Position), uint32(n))
		w.Bodies(bodies)
	}
	return bodies
}

// TestRepeats checks that a run depends on its script only, also next to other worlds.
func TestRepeats(t *testing.T) {
	const ticks = 400
	alone := play(t, 3, ticks)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i, b := range play(t, 3, ticks) {
				if b != alone[i] {
					t.Errorf("cube %d is %+v, was %+v", i, b, alone[i])
					return
				}
			}
		})
	}
	wg.Wait()
	for i, b := range play(t, 4, ticks) {
		if b != alone[i] {
			return
		}
	}
	t.Error("another script does the same")
}

// TestBounds checks that states stay within bounds, whatever the player does.
func TestBounds(t *testing.T) {
	p := small()
	w, bodies := start(t, p)
	moved, touched := 0, 0
	for n := range 1200 {
		in := world.Input(n / 7 % 64)
		if n > 600 {
			in = world.Right | world.Pull // into the wall
		}
		w.Step(in, uint32(n))
		w.Bodies(bodies)
		for i := range bodies {
			b := &bodies[i]
			length := 0.0
			for _, v := range b.Orientation {
				length += v * v
			}
			for k := range 3 {
				if math.Abs(b.Position[k]) > p.Bound+1 || math.Abs(b.Linear[k]) > p.MaxSpeed || math.Abs(b.Angular[k]) > p.MaxSpeed {
					t.Fatalf("tick %d, cube %d: %+v", n, i, *b)
				}
			}
			if math.Abs(length-1) > 1e-6 || b.Position[2] < 0 {
				t.Fatalf("tick %d, cube %d: %+v", n, i, *b)
			}
			if i > 0 && b.Moving() {
				moved++
			}
			if i > 0 && b.Interacting() {
				touched++
			}
		}
	}
	if moved < 1000 || touched < moved/2 || bodies[0].Position[0] < p.Bound-2 {
		t.Errorf("others moved %d times, touched %d; the player is at %v", moved, touched, bodies[0].Position)
	}
}

// TestRest checks that untouched cubes rest, and that cubes that were blown away come to rest.
func TestRest(t *testing.T) {
	w, bodies := start(t, small())
	resting := func() (n int) {
		w.Bodies(bodies)
		for i := range bodies[1:] {
			if !bodies[1+i].Moving() && bodies[1+i].Linear == [3]float64{} {
				n++
			}
		}
		return n
	}
	if n := resting(); n != 64 {
		t.Fatalf("%d rest at first", n)
	}
	for n := range 90 {
		w.Step(world.Push, uint32(n))
	}
	if n := resting(); n > 55 {
		t.Errorf("%d of 64 rest while the player blows", n)
	}
	for n := range 300 {
		w.Step(0, uint32(n))
	}
	if n := resting(); n < 60 {
		t.Errorf("%d of 64 rest at last", n)
	}
}

// TestSet checks that a world with the bodies of another one continues like that one.
func TestSet(t *testing.T) {
	a, bodies := start(t, small())
	b, others := start(t, small())
	s := world.NewScript(9, 4)
	for n := range 240 {
		a.Step(s.Next(bodies[0].Position), uint32(n))
		a.Bodies(bodies)
	}
	for i := range bodies {
		b.Set(i, &bodies[i])
	}
	b.Bodies(others)
	for i := range bodies {
		if got, want := others[i], bodies[i]; got.Position != want.Position || got.Linear != want.Linear || got.Moving() != want.Moving() ||
			got.Interacting() != want.Interacting() {
			t.Fatalf("cube %d is %+v, want %+v", i, got, want)
		}
	}
	for n := range 6 {
		in := s.Next(bodies[0].Position)
		a.Step(in, uint32(n))
		b.Step(in, uint32(n))
		a.Bodies(bodies)
	}
	b.Bodies(others)
	for i := range bodies {
		for k := range 3 {
			if d := math.Abs(bodies[i].Position[k] - others[i].Position[k]); d > 0.3 {
				t.Errorf("cube %d is %v, should be %v", i, others[i].Position, bodies[i].Position)
			}
		}
	}
}

func TestParams(t *testing.T) {
	for want, change := range map[string]func(*world.Params){
		"Step":    func(p *world.Params) { p.Step = 0 },
		"Gravity": func(p *world.Params) { p.Gravity = math.NaN() },
		"Side":    func(p *world.Params) { p.Side = world.MaxSide + 1 },
		"walls":   func(p *world.Params) { p.Spacing = 10 },
	} {
		p := world.Default()
		change(&p)
		if _, err := world.New(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
