package fleetload

import (
	"context"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/sleep"
)

// crash kills servers while everybody plays.
func (r *run) crash(ctx context.Context, res *Result) error {
	for i := range r.bots {
		r.bots[i].Load().calm = true // what is unacknowledged is lost with its server
	}
	stop := r.play(ctx)
	defer stop()
	if err := sleep.For(ctx, beforeKill); err != nil {
		return err
	}
	rand.Shuffle(len(r.live), func(i, k int) { r.live[i], r.live[k] = r.live[k], r.live[i] })
	current := map[uint64]at{} // by client
	for i, n := range r.live {
		record, err := n.Record()
		if err != nil {
			return err
		}
		for _, v := range record.Visits {
			if c, known := current[v.Client]; !known || v.Last > c.last {
				current[v.Client] = at{i, v.Last}
			}
		}
	}
	begin := time.Now()
	for i := range r.bots {
		r.bots[i].Load().journal.start(begin)
	}
	var killing errgroup.Group
	for _, n := range r.live[:kills] {
		killing.Go(n.Kill)
	}
	err := killing.Wait()
	r.live = r.live[kills:]
	if err != nil {
		return err
	}
	if err := sleep.For(ctx, afterKill); err != nil {
		return err
	}
	back := map[uint64]time.Duration{}
	for _, n := range r.live {
		record, err := n.Record()
		if err != nil {
			return err
		}
		for _, v := range record.Visits {
			took := v.Called.Sub(begin)
			if old, known := back[v.Client]; took > 0 && v.Calls > 0 && (!known || took < old) {
				back[v.Client] = took
			}
			res.Mismatches += v.Wrong
		}
	}
	slowest, longest := uint64(0), time.Duration(-1)
	for client, c := range current {
		if c.server >= kills {
			continue
		}
		res.Orphans++
		took, ok := back[client]
		if ok {
			res.back = append(res.back, took)
		} else {
			took = afterKill
		}
		if took > longest {
			slowest, longest = client, took
		}
	}
	res.finish()
	r.show(res.returns())
	if longest >= 0 {
		b := r.bots[slowest-1].Load()
		res.Slowest = b.journal.String()
		r.show("the slowest of them: " + res.Slowest)
	}
	return nil
}

// at is where a player was when its server was killed.
type at struct {
	server int
	last   int32 // call
}
