// Package allocs measures allocations and the heap in tests.
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

// Heap returns the bytes of the heap in use, without garbage.
func Heap() int64 {
	runtime.GC()
	runtime.GC() // frees what finalizers and pools held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
