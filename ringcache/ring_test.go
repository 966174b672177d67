package ringcache

import (
	"maps"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
)

// TestModel compares with a map from slot to number and a map of the values.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.IntRange(1, 20).Draw(t, "capacity")
		prepared := 0
		r := NewFunc(capacity, func(slot *int) { prepared, *slot = prepared+1, -1 })
		if r.Cap() != capacity || prepared != capacity {
			t.Fatalf("Cap() = %d, %d slots prepared, want %d", r.Cap(), prepared, capacity)
		}
		holds := map[uint64]uint64{}
		values := map[uint64]int{} // by slot, kept after eviction and Reset
		for slot := range uint64(capacity) {
			values[slot] = -1
		}
		start := rapid.SampledFrom([]uint64{0, 1000, 1<<16 - 30, 1<<63 - 30, math.MaxUint64 - 30}).Draw(t, "start")
		number := rapid.Custom(func(t *rapid.T) uint64 {
			return start + rapid.Uint64Range(0, 60).Draw(t, "offset")
		})
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				seq := number.Draw(t, "seq")
				slot := seq % uint64(capacity)
				p := r.Put(seq)
				if *p != values[slot] {
					t.Fatalf("Put(%d) found %d, want %d", seq, *p, values[slot])
				}
				*p = rapid.Int().Draw(t, "value")
				holds[slot], values[slot] = seq, *p
			},
			"delete": func(t *rapid.T) {
				seq := number.Draw(t, "seq")
				r.Delete(seq)
				maps.DeleteFunc(holds, func(_, held uint64) bool { return held == seq })
			},
			"reset": func(*rapid.T) {
				r.Reset()
				clear(holds)
			},
			"": func(t *rapid.T) {
				for i := range uint64(61) {
					seq := start + i
					slot := seq % uint64(capacity)
					held, ok := holds[slot]
					got := r.Get(seq)
					if (got != nil) != (ok && held == seq) || got != nil && *got != values[slot] {
						t.Fatalf("Get(%d) = %v, slot holds %d, %v", seq, got, held, ok)
					}
				}
				next, n := uint64(0), 0
				for seq, v := range r.All() {
					slot := seq % uint64(capacity)
					if slot < next || holds[slot] != seq || *v != values[slot] {
						t.Fatalf("All has %d with %d, slot holds %d with %d", seq, *v, holds[slot], values[slot])
					}
					next, n = slot+1, n+1
				}
				if n != len(holds) {
					t.Fatalf("All has %d numbers, want %d", n, len(holds))
				}
				for range r.All() {
					break
				}
			},
		})
	})
}

// TestDeleteInLoop verifies that a loop over the numbers may delete each.
func TestDeleteInLoop(t *testing.T) {
	r := New[int](4)
	for seq := range uint64(6) {
		r.Put(seq)
	}
	for seq := range r.All() {
		r.Delete(seq)
	}
	for seq := range r.All() {
		t.Errorf("%d is still there", seq)
	}
}

func TestNoCapacityPanics(t *testing.T) {
	for _, capacity := range []int{0, -1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("no panic for capacity %d", capacity)
				}
			}()
			New[int](capacity)
		}()
	}
}

func TestNoAllocations(t *testing.T) {
	r := NewFunc(7, func(slot *[]byte) { *slot = make([]byte, 0, 16) })
	seq, missed := uint64(0), 0
	if n := allocs.PerRun(1000, func() {
		slot := r.Put(seq)
		*slot = append((*slot)[:0], "a frame"...)
		if r.Get(seq) == nil {
			missed++
		}
		seq++
	}); n != 0 || missed != 0 {
		t.Errorf("%v allocations a run, %d missed", n, missed)
	}
}
