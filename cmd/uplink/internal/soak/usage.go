package soak

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

// Usage is what the process holds.
type Usage struct {
	Goroutines int    `json:"goroutines"`
	Heap       uint64 `json:"heap_bytes"` // in use after a collection
	Files      int    `json:"files"`      // descriptors; 0 where the system does not tell
}

// look collects garbage and looks what is left.
func look() Usage {
	runtime.GC()
	runtime.GC() // what finalizers and pools held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := Usage{Goroutines: runtime.NumGoroutine(), Heap: m.HeapAlloc}
	if files, err := os.ReadDir("/proc/self/fd"); err == nil {
		u.Files = len(files) - 1 // without the one that reads the folder
	}
	return u
}

// What a round may hold more than an earlier one: heartbeats and reconnections do not stand still while they are counted,
// and simnet keeps the memory of packets for later ones, 1.5 MB at most.
const (
	slackGoroutines = 8
	slackFiles      = 4
	slackHeap       = 5 << 19
	slackHeapShare  = 0.1
)

// grown says what a later usage has too much; empty if nothing.
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

// patience is how long what is on its way, connections that end and datagrams that wait, may hold more.
const patience = 3 * time.Second

// settled looks again while there is more than before, until it has been patient enough.
func (u Usage) settled() Usage {
	later := look()
	for deadline := time.Now().Add(patience); len(u.grown(later)) > 0 && time.Now().Before(deadline); later = look() {
		time.Sleep(10 * time.Millisecond)
	}
	return later
}

func mb(bytes uint64) float64 { return float64(bytes) / 1e6 }

// String gives the usage as text.
func (u Usage) String() string {
	return fmt.Sprintf("%d goroutines, %.1f MB heap, %d files", u.Goroutines, mb(u.Heap), u.Files)
}
