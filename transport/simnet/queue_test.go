package simnet

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestQueueOrder sends numbered values over a jittery link, and checks that each arrives as often
// and when the link said, in order of time, and of sending among equal times.
func TestQueueOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{
			Jitter: time.Duration(rapid.IntRange(0, 20).Draw(t, "jitter")),
			Loss:   rapid.Float64Range(0, 0.5).Draw(t, "loss"), Duplicate: 0.3,
			Seed: rapid.Uint64().Draw(t, "seed"),
		}
		link, err := NewLink(cfg)
		if err != nil {
			t.Fatal(err)
		}
		q := NewQueue[int](link)
		flying := 0
		var now, last time.Duration
		lastValue := -1
		pop := func() {
			next, some := q.Next()
			v, at, ok := q.Pop(now)
			if ok != (some && next <= now) || ok && at != next {
				t.Fatalf("next %v %v, now %v, popped at %v %v", next, some, now, at, ok)
			}
			if !ok {
				return
			}
			flying--
			if at < last || cfg.Jitter == 0 && v < lastValue {
				t.Fatalf("value %d of %v came after %d of %v", v, at, lastValue, last)
			}
			last, lastValue = at, v
		}
		for i := range 100 {
			flying += q.Push(now, i, 1)
			now += time.Duration(rapid.IntRange(0, 5).Draw(t, "pause"))
			pop()
		}
		now += time.Hour
		for q.flying.len() > 0 {
			pop()
		}
		if flying != 0 {
			t.Errorf("%d values came too few", flying)
		}
	})
}

func TestQueueEmpty(t *testing.T) {
	q := NewQueue[string](newTestLink(t, Config{Loss: 1}))
	if n := q.Push(0, "lost", 1); n != 0 {
		t.Errorf("%d copies", n)
	}
	if _, ok := q.Next(); ok {
		t.Error("there is a next value")
	}
	if v, _, ok := q.Pop(time.Hour); ok {
		t.Errorf("popped %q", v)
	}
}
