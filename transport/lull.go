package transport

import "time"

const (
	// lullAfter is how many batches in a row bring nothing but heartbeats of idle sessions before a lull.
	lullAfter = 16
	// lullQuiet is for how long there was nothing else before it.
	lullQuiet = 2 * time.Second
)

// lull notices that a listener has nothing but idle sessions, and many. To be woken for each of their heartbeats would
// cost more than to answer it, so the loop then reads, and ticks, every second tick. The first datagram of another kind
// ends that, or two ticks without any, or that this end has messages for somebody.
type lull struct {
	datagrams, idle int       // of this batch
	batches         int       // in a row
	other           time.Time // when there was something else
}

// rest says after a batch whether there is a lull.
func (s *shard) rest(now time.Time) bool {
	l := &s.lull
	switch {
	case l.idle != l.datagrams:
		l.disturb(now)
	case l.datagrams == 0:
		l.batches = 0
	default:
		l.batches++
	}
	l.datagrams, l.idle = 0, 0
	return l.batches >= lullAfter && now.Sub(l.other) >= lullQuiet
}

// disturb notes that there is something else than idle sessions.
func (l *lull) disturb(now time.Time) { l.batches, l.other = 0, now }
