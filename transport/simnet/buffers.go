package simnet

import "sync"

// buffers holds the memory of packets that are not on their way.
var buffers freeList

// freeList is a list of empty slices. (A sync.Pool would allocate for each slice that is put in.)
type freeList struct {
	mu   sync.Mutex
	free [][]byte
}

const (
	maxFree    = 1024
	bufferSize = 1500
)

func (f *freeList) get() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := len(f.free) - 1
	if last < 0 {
		return make([]byte, 0, bufferSize)
	}
	b := f.free[last]
	f.free = f.free[:last]
	return b
}

func (f *freeList) put(b []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.free) < maxFree && cap(b) <= bufferSize {
		f.free = append(f.free, b[:0])
	}
}
