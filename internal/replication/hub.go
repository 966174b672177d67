package replication

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/session"
)

// hub holds the replicas of a world, whatever codec each has, and sends to all of them.
type hub struct {
	interval float64 // between two messages to a player, in ticks: at least 1

	tick  atomic.Uint64                // the newest
	ticks [snapshot.Ring]atomic.Uint64 // of the most recent snapshots, by number

	mu       sync.Mutex
	replicas []*Replica
	past     session.ReplicationStats // of closed replicas

	// Of Broadcast, which allocates nothing once warm:
	targets    []*Replica
	clock      func() time.Time
	next, sent atomic.Int64 // index of the next target, and number of messages
	err        atomic.Pointer[error]
	work       sync.WaitGroup
	helper     func()                      // runs and signals work; bound once
	prepare    func([]*Replica, time.Time) // called before a tick is sent
	start      time.Time
	spread     time.Duration // over which messages leave, from start on
	deferred   deferredReplicas
	flush      func() // writes what the players' Send has queued

	// Of Release, likewise:
	releaseMu  sync.Mutex
	releases   sync.WaitGroup
	releaser   func() // releases and signals releases; bound once
	releasedAt time.Time
}

// FlushBy sets the function that writes the datagrams which [Player.Send] has queued. It is called
// after each group of messages. Call FlushBy before the first Broadcast.
func (h *hub) FlushBy(flush func()) { h.flush = flush }

// Flush writes the datagrams that [Player.Send] has queued.
func (h *hub) Flush() {
	if h.flush != nil {
		h.flush()
	}
}

// spreadStep is the time between two groups of messages of a broadcast. Each costs a timer.
const spreadStep = time.Millisecond

// deferredReplicas are replicas whose messages wait, in the order of their departure. They are safe
// for concurrent use.
type deferredReplicas struct {
	mu    sync.Mutex
	list  []deferredReplica
	first int // index of the first that waits
}

type deferredReplica struct {
	replica *Replica
	at      time.Time
}

func (d *deferredReplicas) add(s deferredReplica) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = append(d.list, s)
	l := d.list[d.first:]
	for i := len(l) - 1; i > 0 && l[i].at.Before(l[i-1].at); i-- { // added by another goroutine
		l[i], l[i-1] = l[i-1], l[i]
	}
}

// due returns the number of replicas that are due.
func (d *deferredReplicas) due(now time.Time) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for l := d.list[d.first:]; n < len(l) && !l[n].at.After(now); n++ {
	}
	return n
}

// take removes and returns the first replica if it is due, or if all are to be sent now. Otherwise
// it returns nil and when the first replica is due; ok is false if there is none.
func (d *deferredReplicas) take(now time.Time, all bool) (s *Replica, next time.Time, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.first == len(d.list) {
		d.list, d.first = d.list[:0], 0
		return nil, time.Time{}, false
	}
	first := &d.list[d.first]
	if !all && first.at.After(now) {
		return nil, first.at, true
	}
	s, *first = first.replica, deferredReplica{}
	d.first++
	return s, time.Time{}, true
}

// releaseAll sends all messages that wait.
func (h *hub) releaseAll() {
	h.releaseMu.Lock()
	defer h.releaseMu.Unlock()
	if _, waits := h.release(time.Time{}, true); waits {
		h.Flush()
	}
}

// minReleasesPerGoroutine bounds the goroutines of Release, which only encrypt.
const minReleasesPerGoroutine = 32

// Release sends the messages of the last Broadcast that are due, by several goroutines if there are
// many. It returns when to call it again, and false if no message waits.
func (h *hub) Release(now time.Time) (next time.Time, waits bool) {
	h.releaseMu.Lock()
	defer h.releaseMu.Unlock()
	if h.releaser == nil {
		h.releaser = func() {
			defer h.releases.Done()
			h.release(h.releasedAt, false)
		}
	}
	h.releasedAt = now
	n := h.deferred.due(now)
	for range min(runtime.GOMAXPROCS(0), n/minReleasesPerGoroutine) - 1 {
		h.releases.Add(1)
		go h.releaser()
	}
	next, waits = h.release(now, false)
	h.releases.Wait()
	if n > 0 {
		h.Flush()
	}
	return next, waits
}

func (h *hub) release(now time.Time, all bool) (next time.Time, waits bool) {
	for {
		s, next, waits := h.deferred.take(now, all)
		if s == nil {
			return next, waits
		}
		s.release()
	}
}

// minPlayersPerGoroutine bounds the goroutines of a broadcast: starting more would take longer.
const minPlayersPerGoroutine = 4

func (h *hub) add(s *Replica) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.replicas = append(h.replicas, s)
}

// remove removes a closed replica and keeps its counts.
func (h *hub) remove(s *Replica) {
	st := s.Stats()
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.Index(h.replicas, s); i >= 0 {
		h.replicas = slices.Delete(h.replicas, i, i+1)
		h.past.Add(&st)
	}
}

func (h *hub) replicaOf(p Player) *Replica {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.IndexFunc(h.replicas, func(s *Replica) bool { return s.player == p }); i >= 0 {
		return h.replicas[i]
	}
	return nil
}

// prepareAll prepares to send the newest tick.
func (h *hub) prepareAll(now time.Time) {
	h.mu.Lock()
	h.targets = append(h.targets[:0], h.replicas...)
	h.mu.Unlock()
	h.prepare(h.targets, now)
}

// Broadcast encodes the newest tick for all players whose clients have subscribed, and returns the
// number of messages. Messages leave evenly over a time from now on, in the order in which the
// world was offered: some of them during the call, the others by [World.Release]. Those of the last
// Broadcast that still wait leave first. Broadcast uses several goroutines if there are many
// players, which read the time from clock. The error is the first of an encoder. That a session has
// ended is no error.
func (h *hub) Broadcast(clock func() time.Time, spread time.Duration) (int, error) {
	if h.helper == nil {
		h.helper = func() {
			defer h.work.Done()
			h.run()
		}
	}
	h.clock, h.start, h.spread = clock, clock(), spread
	h.prepareAll(h.start)
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
	h.Flush()
	clear(h.targets) // so that closed replicas can be freed
	if err := h.err.Load(); err != nil {
		return int(h.sent.Load()), *err
	}
	return int(h.sent.Load()), nil
}

// run sends to targets until none is left.
func (h *hub) run() {
	flushed := h.start
	for i := h.next.Add(1) - 1; int(i) < len(h.targets); i = h.next.Add(1) - 1 {
		s, now := h.targets[i], h.clock()
		h.release(now, false)
		if now.Sub(flushed) >= spreadStep {
			flushed = now
			h.Flush()
		}
		at := h.start.Add((h.spread * time.Duration(i) / time.Duration(len(h.targets))).Truncate(spreadStep))
		wait := at.After(now)
		if !wait {
			at = now
		}
		switch sent, err := s.send(at, wait); {
		case sent:
			h.sent.Add(1)
			if wait {
				h.deferred.add(deferredReplica{s, at})
			}
		case err != nil && !errors.Is(err, ErrNotReady) && !isSessionError(err):
			first := err // err itself would escape
			h.err.CompareAndSwap(nil, &first)
		}
	}
}
