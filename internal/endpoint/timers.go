package endpoint

import "time"

const (
	// slotTime is the duration of a slot of the timer wheel, a fraction of a tick.
	slotTime = 4 * time.Millisecond
	// slots cover 16 s: more than the time between two heartbeats of an idle session.
	slots = 4096
)

// timer is a connection's entry in the timer wheel. Only the loop uses it.
type timer struct {
	at         time.Time // time at which the session must be advanced
	slot       int64     // slot of the entry, counted from the start of the wheel
	list       *connList // list of the slot, or due; nil if the connection has no entry
	prev, next *Conn     // neighbors in the list
}

// timers is a timer wheel of connections. A connection whose time is postponed stays in its slot
// until the slot is due: of 10,000 idle connections, whose times move with each heartbeat, only the
// timer itself is written.
type timers struct {
	start time.Time
	now   int64 // slots before this one are empty; this one may hold connections that are not due
	wheel []connList
	due   connList // connections of slots that have passed
	count int
}

// newTimers returns an empty wheel. No later time is before start.
func newTimers(start time.Time) timers {
	return timers{start: start, wheel: make([]connList, slots)}
}

// slotOf returns the slot of a time, or the last slot if the time is beyond the wheel.
func (t *timers) slotOf(at time.Time) int64 {
	return min(max(int64(at.Sub(t.start)/slotTime), t.now), t.now+slots-1)
}

func (t *timers) set(c *Conn, at time.Time) {
	c.timer.at = at
	slot := t.slotOf(at)
	if c.timer.list != nil {
		if c.timer.slot <= slot {
			return
		}
		t.remove(c)
	}
	c.timer.slot = slot
	t.wheel[slot%slots].add(c)
	t.count++
}

func (t *timers) remove(c *Conn) {
	if c.timer.list != nil {
		c.timer.list.remove(c)
		t.count--
	}
}

// advance moves the wheel to the time now.
func (t *timers) advance(now time.Time) {
	to := max(int64(now.Sub(t.start)/slotTime), t.now)
	for slot := max(t.now, to-slots+1); slot <= to; slot++ {
		t.due.appendAll(&t.wheel[slot%slots])
	}
	t.now = to
}

// next removes and returns a connection that is due, or returns nil.
func (t *timers) next(now time.Time) *Conn {
	for c := t.due.first; c != nil; c = t.due.first {
		t.remove(c)
		if !now.Before(c.timer.at) {
			c.timer.at = time.Time{}
			return c
		}
		t.set(c, c.timer.at)
	}
	return nil
}

// connList is a list of connections, linked by their timers.
type connList struct{ first, last *Conn }

func (l *connList) add(c *Conn) {
	c.timer.list, c.timer.prev, c.timer.next = l, l.last, nil
	if l.last == nil {
		l.first = c
	} else {
		l.last.timer.next = c
	}
	l.last = c
}

func (l *connList) remove(c *Conn) {
	prev, next := c.timer.prev, c.timer.next
	if prev == nil {
		l.first = next
	} else {
		prev.timer.next = next
	}
	if next == nil {
		l.last = prev
	} else {
		next.timer.prev = prev
	}
	c.timer.list, c.timer.prev, c.timer.next = nil, nil, nil
}

// appendAll moves all connections of another list to the end of l.
func (l *connList) appendAll(o *connList) {
	for c := o.first; c != nil; c = o.first {
		o.remove(c)
		l.add(c)
	}
}
