package replication

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// minPlayersPerGoroutine is the minimum number of players per goroutine of a broadcaster. Starting
// more goroutines would take longer than sending.
const minPlayersPerGoroutine = 4

// broadcaster sends to many players on several goroutines. Once warm it allocates nothing.
type broadcaster struct {
	streams []*Stream
	clock   func() time.Time
	next    atomic.Int64 // index of the next stream
	sent    atomic.Int64
	work    sync.WaitGroup
	helper  func() // sends and signals work; bound once

	mu  sync.Mutex
	err error // the first
}

// broadcast sends the next message to each of streams and returns the number of messages. The error
// is the first that a sender returned; that a session has ended is none. clock returns the time.
func (b *broadcaster) broadcast(streams []*Stream, clock func() time.Time) (int, error) {
	if b.helper == nil {
		b.helper = func() {
			defer b.work.Done()
			b.send()
		}
	}
	b.streams, b.clock, b.err = streams, clock, nil
	b.next.Store(0)
	b.sent.Store(0)
	helpers := min(runtime.GOMAXPROCS(0), len(streams)/minPlayersPerGoroutine) - 1
	for range helpers {
		b.work.Add(1)
		go b.helper()
	}
	b.send()
	b.work.Wait()
	clear(b.streams) // so that closed streams can be freed
	return int(b.sent.Load()), b.err
}

func (b *broadcaster) send() {
	for {
		i := int(b.next.Add(1)) - 1
		if i >= len(b.streams) {
			return
		}
		switch err := b.streams[i].send(b.clock()); {
		case err == nil:
			b.sent.Add(1)
		case errors.Is(err, ErrNotReady), errors.Is(err, errNothing), isSessionError(err):
		default:
			b.mu.Lock()
			if b.err == nil {
				b.err = err
			}
			b.mu.Unlock()
		}
	}
}
