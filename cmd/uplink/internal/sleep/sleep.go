// Package sleep waits under a context.
package sleep

import (
	"context"
	"time"
)

// For waits for d. It returns the context's cause if the context is done before.
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
