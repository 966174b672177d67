// Package check has helpers for tests of the packages that uplinktest imports.
package check

import (
	"testing"

	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
)

// TB is the common part of testing.TB and rapid.T.
type TB interface {
	Helper()
	Fatal(args ...any)
}

// Must ends the test if err is not nil.
func Must(t TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Value is called as Value(f())(t). It returns the value of f, and ends the test if f returned an
// error.
func Value[T any](v T, err error) func(TB) T {
	return func(t TB) T {
		t.Helper()
		Must(t, err)
		return v
	}
}

// Panics checks that f panics.
func Panics(t testing.TB, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	f()
}

// NoAllocs checks that f does not allocate. It skips the test under the race detector, which
// allocates.
func NoAllocs(t testing.TB, f func()) {
	t.Helper()
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	if n := allocs.PerRun(100, f); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
