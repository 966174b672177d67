package ds

import "sync"

// queue holds the jobs that wait for Poll, in order. Frames are stored in the inboxes of their
// RPCs, each with its own type, so nothing is allocated once warm.
type queue struct {
	mu      sync.Mutex
	quota   quota
	waiting []job
	polling bool // jobs are running, or a run was interrupted

	// Used only by Poll:
	running []job
	next    int // index in running of the next job
}

type job interface {
	// collect is called for each waiting job before the first one runs, with the queue's lock.
	collect()
	run()
}

type call func()

func (c call) collect() {}
func (c call) run()     { c() }

// push adds a job of a size in bytes, and reports whether the quota admits it. If u is nil, the job
// is always admitted.
func (q *queue) push(u *playerQuota, size int, j job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if u != nil && !q.quota.admit(u, size) {
		return false
	}
	q.waiting = append(q.waiting, j)
	return true
}

func (q *queue) addPlayers(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.quota.players += n
}

// run runs all waiting jobs and returns their number. Jobs of an earlier run must have been
// drained.
func (q *queue) run() int {
	q.mu.Lock()
	q.quota.reset()
	q.polling = true
	q.waiting, q.running = q.running[:0], q.waiting
	for _, j := range q.running {
		j.collect()
	}
	q.mu.Unlock()
	return q.drain()
}

// drain runs the collected jobs that have not run yet, and returns their number. If a job ends the
// goroutine, the next call continues after it.
func (q *queue) drain() (n int) {
	for ; q.next < len(q.running); n++ {
		j := q.running[q.next]
		q.next++
		j.run()
	}
	clear(q.running) // release the players
	q.running, q.next = q.running[:0], 0
	q.mu.Lock()
	defer q.mu.Unlock()
	q.polling = false
	return n
}

func (q *queue) idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) == 0 && !q.polling
}

// quota limits the bytes that wait for Poll. Half of the limit is divided evenly among the players,
// so that no player can crowd out another. The other half is common, first come, first served.
// The queue's lock guards it.
type quota struct {
	limit   int
	players int

	polls  uint64 // number of calls of reset
	used   int    // bytes of all players since the last reset
	common int    // bytes of the common half that are in use
}

// playerQuota counts the part of a quota that one player uses. The queue's lock guards it.
type playerQuota struct {
	polls uint64
	own   int // bytes of the player's own part that are in use
}

// admit reports whether a player may add a job of a size in bytes, and counts it if so.
func (q *quota) admit(u *playerQuota, size int) bool {
	if u.polls != q.polls {
		*u = playerQuota{polls: q.polls}
	}
	half := q.limit / 2
	switch {
	case q.used+size > q.limit: // only if players joined since the last Poll
		return false
	case u.own+size <= half/max(q.players, 1):
		u.own += size
	case q.common+size <= half:
		q.common += size
	default:
		return false
	}
	q.used += size
	return true
}

func (q *quota) reset() {
	q.polls++
	q.used, q.common = 0, 0
}
