package transport

import "time"

const (
	// slotTime is how much time a slot of the timers covers. It is a fraction of a tick.
	slotTime = 4 * time.Millisecond
	// slots cover 16 s together: more than there is between two heartbeats of an idle session.
	slots = 4096
)

// wakeup is a connection's place among the timers. Only the loop touches it.
type wakeup struct {
	at         time.Time // when it wants to be advanced
	slot       int64     // in which it is, counted from the beginning of the timers
	list       *waiting  // of that slot; nil: it is in none
	prev, next *Conn     // in the list
}

// waiting is a list of connections.
type waiting struct{ first, last *Conn }

// timers are connections by the time at which they want to be advanced: a wheel of slots. One that wants it later than
// before stays where it is, and is looked at when its slot comes: of 10,000 idle connections, whose time moves with each
// heartbeat, nothing is touched then but the connection itself.
type timers struct {
	start time.Time
	now   int64 // slot up to which lists are taken; in this one there may be some whose time has not come
	wheel []waiting
	due   waiting // of the slots that were taken
	count int
}

// newTimers returns empty ones. No time that they are given is before start.
func newTimers(start time.Time) timers {
	return timers{start: start, wheel: make([]waiting, slots)}
}

// slotOf returns the slot of a time, or the last that there is now.
func (t *timers) slotOf(at time.Time) int64 {
	return min(max(int64(at.Sub(t.start)/slotTime), t.now), t.now+slots-1)
}

// set gives c a place for the time at, or moves it there.
func (t *timers) set(c *Conn, at time.Time) {
	c.wake.at = at
	slot := t.slotOf(at)
	if c.wake.list != nil {
		if c.wake.slot <= slot {
			return
		}
		t.remove(c)
	}
	c.wake.slot = slot
	t.wheel[slot%slots].add(c)
	t.count++
}

// remove takes c out, if it is in.
func (t *timers) remove(c *Conn) {
	if c.wake.list != nil {
		c.wake.list.remove(c)
		t.count--
	}
}

// turn goes on to the time now: take gives what is due then.
func (t *timers) turn(now time.Time) {
	to := max(int64(now.Sub(t.start)/slotTime), t.now)
	for slot := max(t.now, to-slots+1); slot <= to; slot++ {
		t.due.append(&t.wheel[slot%slots])
	}
	t.now = to
}

// take returns a connection whose time has come, and which is out then, or nil.
func (t *timers) take(now time.Time) *Conn {
	for c := t.due.first; c != nil; c = t.due.first {
		t.remove(c)
		if !now.Before(c.wake.at) {
			c.wake.at = time.Time{}
			return c
		}
		t.set(c, c.wake.at)
	}
	return nil
}

// add puts c at the end.
func (w *waiting) add(c *Conn) {
	c.wake.list, c.wake.prev, c.wake.next = w, w.last, nil
	if w.last == nil {
		w.first = c
	} else {
		w.last.wake.next = c
	}
	w.last = c
}

func (w *waiting) remove(c *Conn) {
	prev, next := c.wake.prev, c.wake.next
	if prev == nil {
		w.first = next
	} else {
		prev.wake.next = next
	}
	if next == nil {
		w.last = prev
	} else {
		next.wake.prev = prev
	}
	c.wake.list, c.wake.prev, c.wake.next = nil, nil, nil
}

// append moves the connections of another list to the end.
func (w *waiting) append(o *waiting) {
	for c := o.first; c != nil; c = o.first {
		o.remove(c)
		w.add(c)
	}
}
