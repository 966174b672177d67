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

	// Of Broadcast, which allocates nothing once warm:
	targets    []*Stream
	clock      func() time.Time
	next, sent atomic.Int64 // index of the next target, and number of messages
	err        atomic.Pointer[error]
	work       sync.WaitGroup
	helper     func() // runs and signals work; bound once
}

// minPlayersPerGoroutine bounds the goroutines of a broadcast: starting more would take longer.
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

func (h *hub) streamOf(p Player) *Stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.IndexFunc(h.streams, func(s *Stream) bool { return s.player == p }); i >= 0 {
		return h.streams[i]
	}
	return nil
}

// Broadcast sends the newest tick to all players whose clients have subscribed, and returns the
// number of messages. It uses several goroutines if there are many players, which read the time
// from clock. The error is the first of an encoder. That a session has ended is no error.
func (h *hub) Broadcast(clock func() time.Time) (int, error) {
	if h.helper == nil {
		h.helper = func() {
			defer h.work.Done()
			h.run()
		}
	}
	h.mu.Lock()
	h.targets = append(h.targets[:0], h.streams...)
	h.mu.Unlock()
	h.clock = clock
	h.err.Store(nil)
	h.next.Store(0)
	h.sent.Store(0)
	helpers := min(runtime.GOMAXPROCS(0), len(h.targets)/minPlayersPerGoroutine) - 1
	for range helpers {
		h.work.Add(1)
		go h.helper()
	}
	h.run()
	h.work.Wait()
	clear(h.targets) // so that closed streams can be freed
	if err := h.err.Load(); err != nil {
		return int(h.sent.Load()), *err
	}
	return int(h.sent.Load()), nil
}

// run sends to targets until none is left.
func (h *hub) run() {
	for i := h.next.Add(1) - 1; int(i) < len(h.targets); i = h.next.Add(1) - 1 {
		switch sent, err := h.targets[i].send(h.clock()); {
		case sent:
			h.sent.Add(1)
		case err != nil && !errors.Is(err, ErrNotReady) && !isSessionError(err):
			first := err // err itself would escape
			h.err.CompareAndSwap(nil, &first)
		}
	}
}
