package predict

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
)

// body is a state whose future depends on the order of its inputs.
type body struct{ at, speed float64 }

func step(b *body, push *int) {
	b.speed = b.speed/2 + float64(*push)
	b.at += b.speed
}

func apart(a, b *body) float64 { return math.Abs(a.at - b.at) }

// TestAgainstServer plays against a server that delivers, loses and repeats inputs, and whose
// states arrive late, not at all and out of order. After each state the prediction is that state
// with the inputs that it lacks.
func TestAgainstServer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type report struct {
			processed uint64
			state     body
		}
		capacity := rapid.IntRange(1, 20).Draw(t, "capacity")
		corrected := 0
		p, err := New(body{}, Config[body, int]{Step: step, Distance: apart, Inputs: capacity, Corrected: func(*body, *body) { corrected++ }})
		if err != nil {
			t.Fatal(err)
		}
		var inputs []int
		var reports []report
		server, processed, faults, seen := body{}, uint64(0), 0, uint64(0)
		t.Repeat(map[string]func(*rapid.T){
			"input": func(t *rapid.T) {
				v := rapid.IntRange(-9, 9).Draw(t, "push")
				if err := p.Apply(uint64(len(inputs)), &v); err != nil {
					t.Fatal(err)
				}
				inputs = append(inputs, v)
			},
			"process": func(t *rapid.T) {
				if processed == uint64(len(inputs)) {
					t.Skip("no input")
				}
				times := rapid.SampledFrom([]int{1, 1, 1, 0, 2}).Draw(t, "times")
				for range times {
					step(&server, &inputs[processed])
				}
				if times != 1 {
					faults++
				}
				processed++
				reports = append(reports, report{processed, server})
			},
			"state": func(t *rapid.T) {
				if len(reports) == 0 {
					t.Skip("no state")
				}
				i := rapid.IntRange(max(0, len(reports)-3), len(reports)-1).Draw(t, "state")
				r := reports[i]
				reports = append(reports[:i], reports[i+1:]...)
				before := *p.State()
				p.Correct(r.processed, &r.state)
				if r.processed < seen {
					if *p.State() != before {
						t.Fatalf("a late state changed %+v to %+v", before, *p.State())
					}
					return
				}
				seen = r.processed
				from := max(int(r.processed), len(inputs)-capacity)
				if p.Waiting() != len(inputs)-from {
					t.Fatalf("%d inputs wait, want %d", p.Waiting(), len(inputs)-from)
				}
				want := r.state
				for _, v := range inputs[from:] {
					step(&want, &v)
				}
				if *p.State() != want {
					t.Fatalf("predicted %+v, want %+v", *p.State(), want)
				}
			},
		})
		st := p.Stats()
		if corrected != int(st.Corrections) || faults == 0 && st.Dropped == 0 && corrected != 0 {
			t.Fatalf("%d corrections reported after %d faults: %+v", corrected, faults, st)
		}
	})
}

// TestTolerance checks what is counted, and that small corrections are applied too.
func TestTolerance(t *testing.T) {
	calls := 0
	p, err := New(body{}, Config[body, int]{Step: step, Distance: apart, Tolerance: 1, Corrected: func(before, after *body) {
		if calls++; before.at != 0.5 || after.at != 3 {
			t.Errorf("corrected from %v to %v", before.at, after.at)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if d := p.Correct(0, &body{at: .5}); d != .5 || p.State().at != .5 || p.Stats().Corrections != 0 {
		t.Errorf("distance %v, state %+v, %+v", d, *p.State(), p.Stats())
	}
	if d := p.Correct(0, &body{at: 3}); d != 2.5 || calls != 1 || p.Stats() != (Stats{States: 2, Corrections: 1, Sum: 2.5, Largest: 2.5}) {
		t.Errorf("distance %v, %+v", d, p.Stats())
	}
	p.cfg.Corrected = nil
	if d := p.Correct(0, &body{at: math.NaN()}); !math.IsInf(d, 1) || !math.IsInf(p.Stats().Largest, 1) {
		t.Errorf("distance %v, %+v", d, p.Stats())
	}
	push := 1
	p.Reset(body{})
	if err := p.Apply(0, &push); err != nil || p.State().at != 1 || p.Waiting() != 1 {
		t.Errorf("after a reset: %v, %+v", err, *p.State())
	}
	if err := p.Apply(0, &push); !errors.Is(err, errOrder) || p.State().at != 1 {
		t.Errorf("the same input again: %v, %+v", err, *p.State())
	}
}

func TestConfig(t *testing.T) {
	for _, cfg := range []Config[body, int]{
		{Distance: apart},
		{Step: step},
		{Step: step, Distance: apart, Tolerance: math.NaN()},
		{Step: step, Distance: apart, Inputs: maxInputs + 1},
		{Step: step, Distance: apart, Inputs: -1},
	} {
		if p, err := New(body{}, cfg); err == nil || p != nil {
			t.Errorf("%+v: no error", cfg)
		}
	}
}

func TestAllocations(t *testing.T) {
	p, err := New(body{}, Config[body, int]{Step: step, Distance: apart, Inputs: 8})
	if err != nil {
		t.Fatal(err)
	}
	seq, push := uint64(0), 1
	if n := allocs.PerRun(100, func() {
		for range 10 {
			_ = p.Apply(seq, &push)
			seq++
		}
		p.Correct(seq-5, &body{at: 1})
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestPlace places a player elsewhere, as a respawn does: the inputs that the state does not
// contain are applied to it, and it is no correction.
func TestPlace(t *testing.T) {
	p, err := New(body{}, Config[body, int]{Step: step, Distance: apart, Corrected: func(before, after *body) {
		t.Errorf("corrected from %v to %v", before.at, after.at)
	}})
	if err != nil {
		t.Fatal(err)
	}
	for seq, push := range []int{1, 2, 3} {
		if err := p.Apply(uint64(seq), &push); err != nil {
			t.Fatal(err)
		}
	}
	p.Place(2, &body{at: 100})
	if *p.State() != (body{103, 3}) || p.Waiting() != 1 || p.Stats().Corrections != 0 {
		t.Errorf("%+v, %d inputs wait, %+v", *p.State(), p.Waiting(), p.Stats())
	}
	p.Place(1, &body{at: 200})
	if p.State().at != 103 || p.Stats().Late != 1 {
		t.Errorf("after a late state: %+v, %+v", *p.State(), p.Stats())
	}
}
