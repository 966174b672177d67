package transport

import "time"

// rescueWait is for how long nothing can be sent before a dialed connection tries another socket.
const rescueWait = time.Second

// rescue notices that a packet connection takes nothing any more: the network that its address belongs to is gone.
// What is sent without an error between two looks calls it off.
type rescue struct {
	sent, failed uint64    // until the last look
	since        time.Time // of the first failure in a row; zero: none
}

// due reports whether it is time to try another one.
func (r *rescue) due(now time.Time, c *sentCounters) bool {
	sent, failed := c.datagrams.Load(), c.failed.Load()
	switch {
	case sent != r.sent:
		r.since = time.Time{}
	case failed != r.failed && r.since.IsZero():
		r.since = now
	}
	due := failed != r.failed && !r.since.IsZero() && now.Sub(r.since) >= rescueWait
	if due {
		r.since = now // and wait again
	}
	r.sent, r.failed = sent, failed
	return due
}
