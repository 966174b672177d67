// Package sleep waits for durations and intervals until a context is done.
package sleep

import (
	"context"
	"iter"
	"time"
)

// For waits for d. If the context is done before, it returns the context's cause.
func For(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// Every yields the time at each interval until ctx is done. If the loop is slow, it drops ticks.
func Every(ctx context.Context, interval time.Duration) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-tick.C:
				if !yield(now) {
					return
				}
			}
		}
	}
}
