package transport

// lullAfter is how many batches in a row bring nothing but heartbeats of idle sessions before a lull.
const lullAfter = 16

// lull notices that a listener has nothing but idle sessions, and many. To be woken for each of their heartbeats would
// cost more than to answer it, so the loop then reads, and ticks, every second tick. The first datagram of another kind
// ends that, or two ticks without any.
type lull struct {
	datagrams, idle int // of this batch
	batches         int // in a row
}

// rest says after a batch whether there is a lull.
func (s *shard) rest() bool {
	l := &s.lull
	switch {
	case l.datagrams == 0, l.idle != l.datagrams:
		l.batches = 0
	default:
		l.batches++
	}
	l.datagrams, l.idle = 0, 0
	return l.batches >= lullAfter
}
