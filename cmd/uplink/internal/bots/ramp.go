package bots

import (
	"context"
	"sync"
	"time"
)

// mostJoining is how many bots shake hands at the same time.
const mostJoining = 128

// ramp has all bots but the first join, spread over the ramp.
func (r *run) ramp(ctx context.Context) {
	begin, n := time.Now(), r.options.Players
	timer := time.NewTimer(0)
	defer timer.Stop()
	joining := make(chan struct{}, mostJoining)
	var all sync.WaitGroup
	defer all.Wait()
	for i := 1; i < n; i++ {
		timer.Reset(time.Until(begin.Add(time.Duration(float64(i) / float64(n) * float64(r.options.Ramp)))))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		select {
		case <-ctx.Done():
			return
		case joining <- struct{}{}:
		}
		all.Go(func() {
			if err := r.join(ctx, i); err != nil && ctx.Err() == nil {
				r.fail(err)
			}
			<-joining
		})
	}
}

// join connects bot i and has it play.
func (r *run) join(ctx context.Context, i int) error {
	b, err := r.newBot(ctx, i)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.bots = append(r.bots, b)
	r.mu.Unlock()
	if n := len(r.pacers); n > 0 {
		r.pacers[i%n].add(b)
	}
	return nil
}

func (r *run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed++; r.cause == nil {
		r.cause = err
	}
}
