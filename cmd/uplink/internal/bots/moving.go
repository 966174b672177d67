package bots

import (
	"context"
	"sync"
	"time"
)

// startMoving has the bots take other sockets, one after the other, until stop is called, which may be more than once.
func (r *run) startMoving() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var moving sync.WaitGroup
	if r.options.RebindEvery > 0 {
		moving.Go(func() { r.move(ctx, r.options.RebindEvery/time.Duration(r.options.Players)) })
	}
	return func() {
		cancel()
		moving.Wait()
	}
}

// move has one bot move at each interval. One that has no connection now, or gets no socket, stays where it is.
func (r *run) move(ctx context.Context, interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for next := 0; ; next++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		b := r.bot(next)
		if b != nil && b.conn.Rebind() == nil {
			r.rebinds.Add(1)
		}
	}
}

// bot gives the bot whose turn it is, or nil if that place is still empty.
func (r *run) bot(turn int) *bot {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := turn % r.options.Players; i < len(r.bots) {
		return r.bots[i]
	}
	return nil
}
