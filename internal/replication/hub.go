package replication

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// hub holds the streams of a world, whatever codec each has, and sends to all of them.
type hub struct {
	mu      sync.Mutex
	streams []*Stream
	past    Stats // of closed streams

	broadcast
}

// broadcast sends one tick to many players on several goroutines. Once warm it allocates nothing.
type broadcast struct {
	targets []*Stream
	clock   func() time.Time
	next    atomic.Int64 // index of the next target
	sent    atomic.Int64
	work    sync.WaitGroup
	helper  func() // sends and signals work; bound once

	errMu sync.Mutex
	err   error // the first
}

// minPlayersPerGoroutine is the minimum number of players per goroutine of a broadcast. Starting
// more goroutines would take longer than sending.
const minPlayersPerGoroutine = 4

func (h *hub) add(s *Stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.streams = append(h.streams, s)
}

// remove removes a closed stream and keeps its counts.
func (h *hub) remove(s *Stream) {
	st := s.Stats()
	st.BaselineAge = 0
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.Index(h.streams, s); i >= 0 {
		h.streams = slices.Delete(h.streams, i, i+1)
		h.past.Add(&st)
	}
}

// streamOf returns the stream of a player, or nil.
func (h *hub) streamOf(p Player) *Stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.IndexFunc(h.streams, func(s *Stream) bool { return s.player == p }); i >= 0 {
		return h.streams[i]
	}
	return nil
}

// Stats returns the counts of all players, past ones included.
func (h *hub) Stats() Stats {
	h.mu.Lock()
	st, streams := h.past, slices.Clone(h.streams)
	h.mu.Unlock()
	for _, s := range streams {
		one := s.Stats()
		st.Add(&one)
	}
	return st
}

// Broadcast sends the newest tick to all players whose clients have subscribed, and returns the
// number of messages. It uses several goroutines if there are many players, which read the time
// from clock. The error is the first of an encoder. That a session has ended is no error.
func (h *hub) Broadcast(clock func() time.Time) (int, error) {
	b := &h.broadcast
	if b.helper == nil {
		b.helper = func() {
			defer b.work.Done()
			b.run()
		}
	}
	h.mu.Lock()
	b.targets = append(b.targets[:0], h.streams...)
	h.mu.Unlock()
	b.clock, b.err = clock, nil
	b.next.Store(0)
	b.sent.Store(0)
	helpers := min(runtime.GOMAXPROCS(0), len(b.targets)/minPlayersPerGoroutine) - 1
	for range helpers {
		b.work.Add(1)
		go b.helper()
	}
	b.run()
	b.work.Wait()
	clear(b.targets) // so that closed streams can be freed
	return int(b.sent.Load()), b.err
}

func (b *broadcast) run() {
	for {
		i := int(b.next.Add(1)) - 1
		if i >= len(b.targets) {
			return
		}
		switch sent, err := b.targets[i].send(b.clock()); {
		case sent:
			b.sent.Add(1)
		case err != nil && !errors.Is(err, ErrNotReady) && !isSessionError(err):
			b.errMu.Lock()
			if b.err == nil {
				b.err = err
			}
			b.errMu.Unlock()
		}
	}
}
