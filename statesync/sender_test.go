package statesync_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/snapshot"
	"github.com/uplink-rpc/uplink/statesync"
)

// still returns a set of n objects at rest.
func still(t testing.TB, s *snapshot.Schema, n int) *snapshot.Set {
	set := s.NewSet()
	for id := range n {
		must(t, set.Add(snapshot.Object{ID: uint16(id)}, []int32{int32(id) * 100, 5, 7, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0}))
	}
	return set
}

func TestBudget(t *testing.T) {
	s, r := pair(t, testSchema(t), config)
	set := still(t, testSchema(t), 40)
	prioritize := func() {
		for id := range set.Len() {
			must(t, s.Prioritize(uint16(id), 1))
		}
	}
	must(t, s.SetBudget(9))
	prioritize()
	out, _, err := s.Append([]byte("x"), 1, set)
	if !errors.Is(err, statesync.ErrBudget) || string(out) != "x" || !strings.Contains(err.Error(), "takes a packet of") {
		t.Fatalf("got %q, %v", out, err)
	}
	for tick, budget := range []int{60, 533, 90, 1024, 64} {
		must(t, s.SetBudget(budget))
		prioritize()
		out, info, err := s.Append(nil, int64(tick+1), set)
		if err != nil || len(out) > budget || len(info.Objects) == 0 {
			t.Fatalf("%d bytes with %d objects of a budget of %d: %v", len(out), len(info.Objects), budget, err)
		}
		if budget < 300 && len(out) < budget-25 {
			t.Errorf("%d bytes of a budget of %d", len(out), budget)
		}
		decode(t, r, out)
	}
	for _, bad := range []int{0, -1, statesync.MaxPacket + 1} {
		if s.SetBudget(bad) == nil {
			t.Errorf("a budget of %d was taken", bad)
		}
	}
}

// TestLargeInputs sends inputs that fill the budget: updates are sent too.
func TestLargeInputs(t *testing.T) {
	s, r := pair(t, testSchema(t), config)
	set := still(t, testSchema(t), 5)
	must(t, s.SetBudget(60))
	for tick := range int64(20) {
		data := make([]byte, 200)
		for i := range data {
			data[i] = byte(tick*int64(i) ^ 0x5a)
		}
		must(t, s.AddInputs(tick, statesync.Input{Data: data}))
		_ = s.Prioritize(uint16(tick%5), 1)
		out, info, err := s.Append(nil, tick, set)
		if err != nil || len(info.Objects) != 1 {
			t.Fatalf("%+v, %v", info, err)
		}
		decode(t, r, out)
	}
}

func TestTicks(t *testing.T) {
	s, _ := pair(t, testSchema(t), config)
	set := still(t, testSchema(t), 3)
	for _, c := range []struct {
		tick int64
		ok   bool
	}{{100, true}, {100, false}, {99, false}, {101, true}, {1 << 40, true}, {math.MaxInt64, false}, {5, false}, {1<<40 + 1, true}} {
		_, _, err := s.Append(nil, c.tick, set)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, statesync.ErrTick) {
			t.Errorf("tick %d gave %v", c.tick, err)
		}
	}
	must(t, s.AddInputs(7))
	if err := s.AddInputs(7); !errors.Is(err, statesync.ErrTick) {
		t.Errorf("inputs of the same tick gave %v", err)
	}
	if s.AddInputs(8, statesync.Input{Player: 2}, statesync.Input{Player: 2}) == nil ||
		s.AddInputs(8, statesync.Input{Data: make([]byte, 256)}) == nil {
		t.Error("bad inputs were taken")
	}
}

func TestAllocations(t *testing.T) {
	w := newWorld(t, 3, 64)
	w.churn = 1 << 30
	s, r := pair(t, w.schema, config)
	s.SetViewer(0)
	set := w.schema.NewSet()
	buf, tick := make([]byte, 0, 2000), int64(0)
	input := statesync.Input{Player: 1, Data: []byte{1, 2, 3}}
	inputs := []statesync.Input{input}
	once := func() {
		tick++
		for i, x := range w.things {
			if x.step(); i%16 == int(tick%16) {
				x.speed[i%3] = float64(tick*int64(i)%9000) - 4500
			}
		}
		w.fill(t, set)
		for i := range set.Len() {
			must(t, s.Prioritize(set.Object(i).ID, 1))
		}
		input.Data[0] = byte(tick / 4)
		must(t, s.AddInputs(tick, inputs...))
		out, _, err := s.Append(buf, tick, set)
		must(t, err)
		decode(t, r, out)
		if tick%3 == 0 {
			ack := r.Ack()
			must(t, s.Ack(ack))
		}
	}
	for range 300 {
		once()
	}
	if n := testing.AllocsPerRun(200, once); n != 0 {
		t.Errorf("%g allocations a packet", n)
	}
}

// TestRelativePlaces checks that positions relative to the viewer take fewer bits, and deltas far
// fewer.
func TestRelativePlaces(t *testing.T) {
	set := still(t, testSchema(t), 200)
	updates := func(cfg statesync.Config, viewer bool) (first, later int) {
		cfg.Velocities, cfg.Budget = config.Velocities, 300
		s, r := pair(t, testSchema(t), cfg)
		if viewer {
			s.SetViewer(0)
		}
		for tick := range int64(30) {
			out, info := send(t, s, tick, set)
			deliver(t, s, r, out)
			if later = len(info.Objects); tick == 0 {
				first = later
			}
		}
		return first, later
	}
	far, same := updates(statesync.Config{NoDelta: true}, false)
	near, _ := updates(statesync.Config{NoDelta: true}, true)
	_, deltas := updates(statesync.Config{}, true)
	if near < far*11/10 || same < far-1 || same > far+1 || deltas < 5*far {
		t.Errorf("%d objects with places whole, %d then, %d from the viewer's, %d as deltas", far, same, near, deltas)
	}
}
