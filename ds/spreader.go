package ds

import (
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/replication"
)

// spreader spreads the datagrams of a world over a part of the time between two ticks. While
// messages wait, it has a goroutine.
type spreader struct {
	world  *replication.World
	spread time.Duration
	done   chan struct{} // closed by close
	timer  *time.Timer   // timer of the goroutine
	run    func()        // method value of release, stored so that a tick allocates nothing

	mu      sync.Mutex
	running bool
	closed  bool
	work    sync.WaitGroup
}

func newSpreader(w *replication.World, spread time.Duration) *spreader {
	s := &spreader{world: w, spread: spread, done: make(chan struct{})}
	s.run = s.release
	return s
}

// send is World.Send.
func (s *spreader) send() (int, error) {
	n, err := s.world.Send(time.Now, s.spread)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running || s.closed {
		return n, err
	}
	now := time.Now()
	if at, waits := s.world.Release(now); waits {
		s.schedule(now, at)
		s.running = true
		s.work.Add(1)
		go s.run()
	}
	return n, err
}

func (s *spreader) schedule(now, at time.Time) {
	if s.timer == nil {
		s.timer = time.NewTimer(at.Sub(now))
	} else {
		s.timer.Reset(at.Sub(now))
	}
}

// release sends the messages that wait, each at its time.
func (s *spreader) release() {
	defer s.work.Done()
	for {
		select {
		case <-s.timer.C:
		case <-s.done:
			return
		}
		if !s.next() {
			return
		}
	}
}

// next sends the messages that are due, and schedules the others. It reports false if nothing
// waits.
func (s *spreader) next() bool {
	now := time.Now()
	at, waits := s.world.Release(now)
	if !waits {
		s.mu.Lock()
		defer s.mu.Unlock()
		if at, waits = s.world.Release(now); !waits { // Send has added nothing in the meantime
			s.running = false
			return false
		}
	}
	s.schedule(now, at)
	return true
}

// close ends the goroutine and waits for it.
func (s *spreader) close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.done)
	}
	s.mu.Unlock()
	s.work.Wait()
}
