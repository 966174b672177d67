// Package allocs counts allocations in tests.
package allocs

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// PerRun returns the mean number of allocations of f, as testing.AllocsPerRun does, but without a
// garbage collection, which allocates itself and empties pools.
func PerRun(runs int, f func()) float64 {
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	return testing.AllocsPerRun(runs, f)
}
