package ds

import "time"

// How an estimate goes about it.
const (
	// estimatePeriod is how long it looks before it decides, or a round trip where that is more.
	estimatePeriod = 200 * time.Millisecond
	// queued is by how much the shortest round trip of a period may be above the shortest of all before a queue is
	// thought to be filling, beside half of what round trips differ by in any case.
	queued = 20 * time.Millisecond
	// silence is for how long nothing may be acked, though something was sent; three round trips where that is more.
	silence = 500 * time.Millisecond
	// baseSpan is how long a shortest round trip is believed, once to twice: paths change.
	baseSpan = 10 * time.Second
	// overtaking is how many messages after it have to be acked before one is lost.
	overtaking = 8
	// sample is of how many messages the share that was lost says something.
	sample = 40

	mostLoss = 0.1  // share of messages
	backOff  = 0.85 // of what came through
	deepest  = 0.6  // of the rate, that one decision leaves
	rush     = 1.5  // growth of a period until the first sign of a limit
	climb    = 16   // seconds that growing through the whole range takes after that
	usage    = 0.7  // share of the rate that has to be used for it to grow
)

// estimate says how many bits a second a connection carries, by how the messages fare that are sent: additive increase,
// multiplicative decrease, between what the game gives. It has no clock: times are arguments and ascend.
type estimate struct {
	least, most float64 // bits a second; of least 0 the rate is always most
	rate        float64

	messages [ackReach]departure
	next     uint16 // after the newest sent
	judged   uint16 // up to which it is known what was lost
	any      bool

	since    time.Time     // start of the period
	sent     int           // bytes in it
	came     int           // bytes in it, acked
	shortest time.Duration // round trip in it; 0: none
	lost, ok int           // messages, of several periods

	base, last time.Duration // shortest round trips of this span and the one before; 0: none
	span       time.Time
	mean, vary time.Duration // of round trips, and how far they are from it, both smoothed
	heard      time.Time     // when something was acked, or was first sent after that
	limited    bool          // a limit was seen
	calm       time.Time     // until when it neither falls nor rises
}

// departure is a message that was sent.
type departure struct {
	seq   uint16
	bytes int
	at    time.Time
	acked bool
}

// limit sets the bounds.
func (e *estimate) limit(least, most float64) {
	if e.rate == 0 {
		e.rate = least
	}
	if least == 0 {
		e.rate = most
	}
	e.least, e.most = least, most
	e.rate = min(max(e.rate, least), most)
}

// departed notes a message of so many bytes, headers included.
func (e *estimate) departed(seq uint16, bytes int, now time.Time) {
	if !e.any {
		e.any, e.judged, e.since, e.heard = true, seq, now, now
	}
	if e.idle() {
		e.heard = now
	}
	e.messages[seq%ackReach] = departure{seq: seq, bytes: bytes, at: now}
	e.next = seq + 1
	e.sent += bytes
}

// idle says that nothing is on its way that was not acked.
func (e *estimate) idle() bool {
	m := &e.messages[(e.next-1)%ackReach]
	return m.at.IsZero() || m.acked
}

// acked takes an ack: the newest that came, and which of those before it did.
func (e *estimate) acked(newest uint16, window uint64, now time.Time) {
	if !e.any {
		return
	}
	if m := e.arrived(newest); m != nil {
		e.heard = now
		e.trip(now.Sub(m.at))
	}
	for i := range uint16(ackReach - 1) {
		if window>>i&1 != 0 && e.arrived(newest-1-i) != nil {
			e.heard = now
		}
	}
	for ; int16(newest-e.judged) >= overtaking; e.judged++ {
		m := &e.messages[e.judged%ackReach]
		switch {
		case m.seq != e.judged || m.at.IsZero():
		case m.acked:
			e.ok++
		default:
			e.lost++
		}
	}
}

// arrived gives a message that is acked for the first time.
func (e *estimate) arrived(seq uint16) *departure {
	m := &e.messages[seq%ackReach]
	if m.seq != seq || m.at.IsZero() || m.acked {
		return nil
	}
	m.acked = true
	e.came += m.bytes
	return m
}

// trip takes a round trip.
func (e *estimate) trip(d time.Duration) {
	d = max(d, 1)
	if e.shortest == 0 || d < e.shortest {
		e.shortest = d
	}
	if e.mean == 0 {
		e.mean = d
	}
	e.vary += ((d - e.mean).Abs() - e.vary) / 8
	e.mean += (d - e.mean) / 8
}

// step decides, once a period.
func (e *estimate) step(now time.Time) {
	if !e.any || e.least == 0 {
		return
	}
	if !e.idle() && now.Sub(e.heard) > max(silence, 3*e.mean) {
		e.heard = now
		e.fall(e.rate/2, now)
		e.limited = false // what comes after it may be another path
		e.begin(now)
		return
	}
	if now.Sub(e.since) < max(estimatePeriod, e.mean) || e.shortest == 0 {
		return
	}
	seconds := now.Sub(e.since).Seconds()
	used, through := 8*float64(e.sent)/seconds, 8*float64(e.came)/seconds
	over := e.shortest - e.shortestOfAll(now)
	loss := 0.0
	if e.lost+e.ok >= sample {
		loss = float64(e.lost) / float64(e.lost+e.ok)
		e.lost, e.ok = 0, 0
	}
	switch calm := now.Before(e.calm); {
	case over > queued+e.vary/2 && !calm:
		e.fall(max(deepest*e.rate, backOff*min(e.rate, through)), now)
	case loss > mostLoss && !calm:
		e.fall(e.rate*(1-loss/2), now)
	case over > queued/2+e.vary/2 || calm || used < usage*e.rate:
	case e.limited:
		e.rate += seconds * (e.most - e.least) / climb
	default:
		e.rate *= rush
	}
	e.rate = min(max(e.rate, e.least), e.most)
	e.begin(now)
}

// fall lowers the rate, and waits for the queue to drain before anything else is decided.
func (e *estimate) fall(rate float64, now time.Time) {
	e.rate, e.limited = max(rate, e.least), true
	e.calm = now.Add(max(estimatePeriod, e.mean))
}

// begin begins a period.
func (e *estimate) begin(now time.Time) { e.since, e.sent, e.came, e.shortest = now, 0, 0, 0 }

// shortestOfAll is the shortest round trip of late.
func (e *estimate) shortestOfAll(now time.Time) time.Duration {
	if e.base == 0 || now.Sub(e.span) > baseSpan {
		e.last, e.base, e.span = e.base, e.shortest, now
	}
	e.base = min(e.base, e.shortest)
	if e.last != 0 {
		return min(e.base, e.last)
	}
	return e.base
}
