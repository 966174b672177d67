package transport

import "time"

// wakeup is a connection's place among the timers. Only the loop touches it.
type wakeup struct {
	at    time.Time
	place int // in the heap, counted from 1; 0: not there
}

// timers is a heap of connections by the time at which they want to be advanced: 10,000 idle ones
// cost a tick one comparison, and one insertion each when a heartbeat is due.
type timers []*Conn

// set gives c a place for the time at, or moves it there.
func (t *timers) set(c *Conn, at time.Time) {
	c.wake.at = at
	if c.wake.place == 0 {
		*t = append(*t, c)
		c.wake.place = len(*t)
	}
	t.down(t.up(c.wake.place))
}

// remove takes c out, if it is in.
func (t *timers) remove(c *Conn) {
	place := c.wake.place
	if place == 0 {
		return
	}
	last := len(*t)
	t.swap(place, last)
	(*t)[last-1] = nil
	*t = (*t)[:last-1]
	c.wake.place = 0
	if place < last {
		t.down(t.up(place))
	}
}

// due returns the earliest connection if its time has come, or nil.
func (t timers) due(now time.Time) *Conn {
	if len(t) == 0 || now.Before(t[0].wake.at) {
		return nil
	}
	return t[0]
}

func (t timers) before(a, b int) bool { return t[a-1].wake.at.Before(t[b-1].wake.at) }

func (t timers) swap(a, b int) {
	t[a-1], t[b-1] = t[b-1], t[a-1]
	t[a-1].wake.place, t[b-1].wake.place = a, b
}

// up moves the connection at place towards the root as far as it belongs, and returns its new place.
func (t timers) up(place int) int {
	for place > 1 && t.before(place, place/2) {
		t.swap(place, place/2)
		place /= 2
	}
	return place
}

// down moves the connection at place away from the root as far as it belongs.
func (t timers) down(place int) {
	for {
		child := 2 * place
		if child > len(t) {
			return
		}
		if child < len(t) && t.before(child+1, child) {
			child++
		}
		if !t.before(child, place) {
			return
		}
		t.swap(place, child)
		place = child
	}
}
