package ds_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
)

// TestIDPool uses a pool at random, and compares it with a model. No two objects have the same id,
// an id is reused last of all free ones, with the next generation, and mistakes change nothing.
func TestIDPool(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.Uint16Range(0, 65535-5).Draw(t, "first")
		n := rapid.Uint16Range(1, 6).Draw(t, "ids")
		p, err := ds.NewIDPool(first, first+n-1)
		if err != nil {
			t.Fatal(err)
		}
		type object struct {
			id         uint16
			generation uint8
		}
		var free, used []object // the model
		for i := range n {
			free = append(free, object{first + i, 0})
		}
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				id, generation, err := p.Take()
				if len(free) == 0 {
					if !errors.Is(err, ds.ErrNoIDs) {
						t.Fatalf("%d, %d, %v, want ErrNoIDs", id, generation, err)
					}
					return
				}
				if got := (object{id, generation}); err != nil || got != free[0] {
					t.Fatalf("%+v, %v, want %+v", got, err, free[0])
				}
				used, free = append(used, free[0]), free[1:]
			},
			"release": func(t *rapid.T) {
				if len(used) == 0 {
					t.Skip("none in use")
				}
				i := rapid.IntRange(0, len(used)-1).Draw(t, "object")
				o := used[i]
				if err := p.Release(o.id, o.generation+1); err == nil {
					t.Fatal("released another generation")
				}
				if err := p.Release(o.id, o.generation); err != nil {
					t.Fatal(err)
				}
				if err := p.Release(o.id, o.generation); err == nil {
					t.Fatal("released twice")
				}
				used = append(used[:i], used[i+1:]...)
				free = append(free, object{o.id, o.generation + 1})
			},
			"release no id of the pool": func(t *rapid.T) {
				if p.Release(first+n, 0) == nil || p.Release(first-1, 0) == nil {
					t.Fatal("no error")
				}
			},
		})
	})
	if p, err := ds.NewIDPool(2, 1); p != nil || err == nil {
		t.Errorf("a pool of no ids: %v", err)
	}
	all, err := ds.NewIDPool(0, 65535)
	uplinktest.Must(t, err)
	if n := allocs.PerRun(70_000, func() {
		id, generation, _ := all.Take()
		_ = all.Release(id, generation)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
