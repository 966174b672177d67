package soak

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

// Usage is the resource usage of the process.
type Usage struct {
	Goroutines int    `json:"goroutines"`
	Heap       uint64 `json:"heap_bytes"` // heap in use after a collection
	Files      int    `json:"files"`      // number of file descriptors; 0 if unknown
}

// look collects garbage and returns the remaining usage.
func look() Usage {
	runtime.GC()
	runtime.GC() // frees objects of finalizers and pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := Usage{Goroutines: runtime.NumGoroutine(), Heap: m.HeapAlloc}
	if files, err := os.ReadDir("/proc/self/fd"); err == nil {
		u.Files = len(files) - 1 // not counting the descriptor of ReadDir
	}
	return u
}

// Permitted growth from round to round: heartbeats and reconnects continue while the usage is
// measured, and simnet reuses up to 1.5 MB of packet memory.
const (
	slackGoroutines = 8
	slackFiles      = 4
	slackHeap       = 5 << 19
	slackHeapShare  = 0.1
)

// grown lists the resources whose later usage is too high.
func (u Usage) grown(later Usage) (what []string) {
	if later.Goroutines > u.Goroutines+slackGoroutines {
		what = append(what, fmt.Sprintf("goroutines from %d to %d", u.Goroutines, later.Goroutines))
	}
	if later.Files > u.Files+slackFiles {
		what = append(what, fmt.Sprintf("file descriptors from %d to %d", u.Files, later.Files))
	}
	if float64(later.Heap) > float64(u.Heap)*(1+slackHeapShare)+slackHeap {
		what = append(what, fmt.Sprintf("the heap from %.1f to %.1f MB", mb(u.Heap), mb(later.Heap)))
	}
	return what
}

// patience is the maximum time for closing connections and for queued datagrams.
const patience = 3 * time.Second

// settled measures until the usage is no longer too high compared with u, or the time patience has
// passed.
func (u Usage) settled() Usage {
	later := look()
	for deadline := time.Now().Add(patience); len(u.grown(later)) > 0 && time.Now().Before(deadline); later = look() {
		time.Sleep(10 * time.Millisecond)
	}
	return later
}

func mb(bytes uint64) float64 { return float64(bytes) / 1e6 }

// String formats the usage.
func (u Usage) String() string {
	return fmt.Sprintf("%d goroutines, %.1f MB heap, %d files", u.Goroutines, mb(u.Heap), u.Files)
}
