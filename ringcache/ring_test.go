package ringcache

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestEveryNumber stores each of a few numbers alone: no other may be found, whatever the capacity.
func TestEveryNumber(t *testing.T) {
	numbers := []uint64{0, 1, 2, 1<<16 - 1, 1 << 16, 1 << 63, math.MaxUint64 - 1, math.MaxUint64}
	for capacity := 1; capacity <= 9; capacity++ {
		for _, stored := range numbers {
			r := New[uint64](capacity)
			if r.Cap() != capacity {
				t.Fatalf("Cap() = %d, want %d", r.Cap(), capacity)
			}
			*r.Put(stored) = stored
			for _, seq := range numbers {
				got := r.Get(seq)
				if (got != nil) != (seq == stored) || got != nil && *got != stored {
					t.Errorf("capacity %d holds %d: Get(%d) = %v", capacity, stored, seq, got)
				}
			}
		}
	}
}

func TestNewFuncAndReset(t *testing.T) {
	calls := 0
	r := NewFunc(5, func(slot *[]byte) {
		calls++
		*slot = make([]byte, 0, 16)
	})
	if calls != 5 {
		t.Fatalf("slots prepared %d times", calls)
	}
	for seq := range uint64(12) {
		slot := r.Put(seq)
		if cap(*slot) != 16 {
			t.Fatalf("slot of %d has capacity %d", seq, cap(*slot))
		}
		*slot = append((*slot)[:0], byte(seq))
	}
	r.Reset()
	for seq := range uint64(12) {
		if r.Get(seq) != nil {
			t.Fatalf("%d is there after Reset", seq)
		}
	}
	if slot := *r.Put(11); cap(slot) != 16 || slot[0] != 11 {
		t.Fatal("Reset lost what the slot keeps")
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

// TestModel compares with a map from slot to number and a map of the values.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.IntRange(1, 20).Draw(t, "capacity")
		r := New[int](capacity)
		holds := map[uint64]uint64{}
		values := map[uint64]int{} // by slot, kept after eviction and Reset
		start := rapid.SampledFrom([]uint64{0, 1000, math.MaxUint64 - 30}).Draw(t, "start")
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
					if (got != nil) != (ok && held == seq) {
						t.Fatalf("Get(%d) = %v, slot holds %d, %v", seq, got, held, ok)
					}
					if got != nil && *got != values[slot] {
						t.Fatalf("Get(%d) = %d, want %d", seq, *got, values[slot])
					}
				}
			},
		})
	})
}

func TestNoAllocations(t *testing.T) {
	r := NewFunc(7, func(slot *[]byte) { *slot = make([]byte, 0, 16) })
	seq, missed := uint64(0), 0
	if n := testing.AllocsPerRun(1000, func() {
		slot := r.Put(seq)
		*slot = append((*slot)[:0], "a frame"...)
		if r.Get(seq) == nil {
			missed++
		}
		r.Get(seq - 3)
		seq++
	}); n != 0 || missed != 0 {
		t.Errorf("%v allocations a run, %d missed", n, missed)
	}
}

func benchmarkGet(b *testing.B, capacity int) {
	r := New[[40]byte](capacity)
	for seq := range uint64(capacity) {
		r.Put(seq)
	}
	seq, hits := uint64(0), 0
	b.ReportAllocs()
	for b.Loop() {
		if r.Get(seq) != nil {
			hits++
		}
		if seq++; seq == uint64(capacity) {
			seq = 0
		}
	}
	if hits == 0 {
		b.Fatal("no hits")
	}
}

func BenchmarkGet64(b *testing.B) { benchmarkGet(b, 64) }

func BenchmarkGet100(b *testing.B) { benchmarkGet(b, 100) }

func TestDeleteAndAll(t *testing.T) {
	r := New[int](4)
	for seq := range uint64(6) {
		*r.Put(seq) = int(seq)
	}
	r.Delete(1) // evicted by 5
	r.Delete(3)
	r.Delete(9)
	sum := 0
	for seq, v := range r.All() {
		if uint64(*v) != seq {
			t.Errorf("number %d has value %d", seq, *v)
		}
		sum = 10*sum + *v
		r.Delete(seq)
	}
	if sum != 452 {
		t.Errorf("values in the order of their slots are %d, want 4, 5, 2", sum)
	}
	for seq := range r.All() {
		t.Errorf("%d is still there", seq)
	}
	*r.Put(7), *r.Put(8) = 1, 2
	for seq := range r.All() {
		if seq != 8 {
			t.Errorf("%d is the first number, want 8", seq)
		}
		break
	}
}
