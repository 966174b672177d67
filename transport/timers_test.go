package transport

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestTimersAgainstModel compares the heap with a list that is searched.
func TestTimersAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var heap timers
		conns := make([]*Conn, 20)
		for i := range conns {
			conns[i] = &Conn{}
		}
		var in []*Conn
		start := time.Unix(1, 0)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			c := rapid.SampledFrom(conns).Draw(t, "conn")
			if rapid.Bool().Draw(t, "remove") {
				heap.remove(c)
				in = slices.DeleteFunc(in, func(d *Conn) bool { return d == c })
			} else {
				heap.set(c, start.Add(time.Duration(rapid.IntRange(0, 50).Draw(t, "at"))))
				if !slices.Contains(in, c) {
					in = append(in, c)
				}
			}
			checkTimers(t, heap, in, start.Add(25))
		}
	})
}

func checkTimers(t *rapid.T, heap timers, in []*Conn, now time.Time) {
	if len(heap) != len(in) {
		t.Fatalf("%d connections, want %d", len(heap), len(in))
	}
	for i, c := range heap {
		if c.wake.place != i+1 {
			t.Fatalf("connection at place %d believes to be at %d", i+1, c.wake.place)
		}
	}
	due := heap.due(now)
	if due != nil && due.wake.at.After(now) {
		t.Fatalf("due at %v, now %v", due.wake.at, now)
	}
	for _, c := range in {
		if due == nil && !c.wake.at.After(now) || due != nil && c.wake.at.Before(due.wake.at) {
			t.Fatalf("a connection is due at %v, and was not returned", c.wake.at)
		}
	}
}

func TestNextTick(t *testing.T) {
	const interval = 10 * time.Millisecond
	last := time.Unix(1, 0)
	for late, want := range map[time.Duration]time.Duration{
		0: interval, 1: interval, interval - 1: interval, interval: 2 * interval, 95 * time.Millisecond: 10 * interval,
	} {
		if got := nextTick(last, last.Add(late), interval).Sub(last); got != want {
			t.Errorf("%v late: next after %v, want %v", late, got, want)
		}
	}
}
