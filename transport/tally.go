package transport

import "github.com/uplink-rpc/uplink/transport/internal/session"

// tally counts the datagrams of a batch: in the loop's goroutine alone, since to count each where others can read it
// would cost more than to look at it.
type tally struct {
	received, bytes uint64
	verdicts        [session.Verdicts]uint64
}

// publish adds what was counted to where others read it, and begins anew.
func (t *tally) publish(c *listenerCounters) {
	if *t == (tally{}) {
		return
	}
	c.received.Add(t.received)
	c.receivedBytes.Add(t.bytes)
	for v, n := range t.verdicts {
		if n != 0 {
			c.verdicts[v].Add(n)
		}
	}
	*t = tally{}
}
