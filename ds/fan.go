package ds

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
)

// fanShare is how many players there are for each goroutine that sends, at least: fewer are sent to sooner by one.
const fanShare = 4

// fan sends to many players at once, on as many goroutines as there are processors and players for. It allocates
// nothing once warm.
type fan struct {
	streams []*downstream
	next    atomic.Int64 // of streams, to be taken
	sent    atomic.Int64
	work    sync.WaitGroup
	help    func() // run, bound once

	mu  sync.Mutex
	err error // the first
}

// sendAll sends the next message to all who are ready, and says to how many it did. The error is the first of those
// that say that a player did not get it.
func (c *downSource) sendAll() (int, error) {
	f := &c.fan
	c.mu.Lock()
	f.streams = append(f.streams[:0], c.streams...)
	c.mu.Unlock()
	if f.help == nil {
		f.help = func() {
			defer f.work.Done()
			f.run()
		}
	}
	f.next.Store(0)
	f.sent.Store(0)
	f.err = nil
	helpers := min(runtime.GOMAXPROCS(0), len(f.streams)/fanShare) - 1
	for range helpers {
		f.work.Add(1)
		go f.help()
	}
	f.run()
	f.work.Wait()
	clear(f.streams) // let go of players
	return int(f.sent.Load()), f.err
}

func (f *fan) run() {
	for {
		i := int(f.next.Add(1)) - 1
		if i >= len(f.streams) {
			return
		}
		switch err := f.streams[i].send(); {
		case err == nil:
			f.sent.Add(1)
		case !errors.Is(err, ErrNotReady) && !errors.Is(err, errNothing) && !isGone(err):
			f.mu.Lock()
			if f.err == nil {
				f.err = err
			}
			f.mu.Unlock()
		}
	}
}
