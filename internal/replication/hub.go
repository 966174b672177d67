package replication

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// hub contains the replicas of a world, of either codec, and sends to all of them.
type hub struct {
	// interval is the minimum mean number of ticks from one message to the next of a player, at
	// least 1.
	interval float64

	tick atomic.Uint64 // newest tick
	// Ticks of the newest snapshots, by number modulo snapshot.Ring.
	ticks [snapshot.Ring]atomic.Uint64

	mu       sync.Mutex
	replicas []*Replica
	past     Stats // counts of closed replicas

	// Fields of Broadcast, which allocates nothing once they have grown:
	targets    []*Replica
	clock      func() time.Time
	next, sent atomic.Int64 // index of the next target, and number of messages sent
	err        atomic.Pointer[error]
	work       sync.WaitGroup
	helper     func()                      // calls run and then work.Done; created once
	prepare    func([]*Replica, time.Time) // called before a tick is sent
	start      time.Time                   // start of the broadcast
	spread     time.Duration               // time after start over which the messages leave
	deferred   deferredReplicas
	flush      func() // writes the datagrams that Player.Send has queued

	// Fields of Release, which allocates nothing either:
	releaseMu  sync.Mutex
	releases   sync.WaitGroup
	releaser   func() // calls release and then releases.Done; created once
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

// spreadStep is the time between two groups of messages of a broadcast. Each group costs a timer.
const spreadStep = time.Millisecond

// deferredReplicas contains the replicas whose messages wait, by time of departure. Safe for
// concurrent use.
type deferredReplicas struct {
	mu    sync.Mutex
	list  []deferredReplica
	first int // index of the first replica that waits
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

// due returns the number of replicas whose messages are due.
func (d *deferredReplicas) due(now time.Time) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for l := d.list[d.first:]; n < len(l) && !l[n].at.After(now); n++ {
	}
	return n
}

// take removes and returns the first replica if its message is due, or if all is set. Otherwise s
// is nil and next is the time at which the message is due. ok is false if no message waits.
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

// releaseAll sends all waiting messages.
func (h *hub) releaseAll() {
	h.releaseMu.Lock()
	defer h.releaseMu.Unlock()
	if _, waits := h.release(time.Time{}, true); waits {
		h.Flush()
	}
}

// minReleasesPerGoroutine is the minimum number of messages per goroutine of Release, which only
// encrypts.
const minReleasesPerGoroutine = 32

// Release sends the messages of the last Broadcast that are due, with several goroutines if there
// are many. It returns the time of the next call, and false if no message waits.
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

// minPlayersPerGoroutine is the minimum number of players per goroutine of a broadcast. Starting
// more goroutines would take longer than it saves.
const minPlayersPerGoroutine = 4

func (h *hub) add(s *Replica) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.replicas = append(h.replicas, s)
}

// remove removes a closed replica and adds its counts to past.
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
// number of messages. The messages leave evenly over the time spread, in the order in which the
// world was offered. Some leave during the call; [World.Release] sends the others. Messages of the
// last Broadcast that still wait leave first. If there are many players, Broadcast uses several
// goroutines, which read the time from clock. It returns the first error of an encoder. The end of
// a session is not an error.
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
