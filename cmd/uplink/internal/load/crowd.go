package load

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/meter"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/sleep"
)

// Crowd is a group of bots that join, have turns at the same rate, are counted and leave. It is
// safe for concurrent use, except for Sent.
type Crowd struct {
	rate    float64 // turns per second of each bot; 0: idle
	size    int
	connect func(ctx context.Context, i int) (*Bot, error)
	pacers  []*pacer
	rebinds atomic.Uint64

	// Used only by observe, whose calls do not overlap:
	late, trips *meter.Durations // since the start, or since they were replaced

	mu     sync.Mutex
	bots   []*Bot // bots that have joined
	failed int
	cause  error // error of the first bot that could not join
}

// NewCrowd returns a crowd of size bots with rate turns per second each. connect connects bot i.
func NewCrowd(size int, rate float64, connect func(ctx context.Context, i int) (*Bot, error)) *Crowd {
	c := &Crowd{rate: rate, size: size, connect: connect, late: meter.NewDurations(), trips: meter.NewDurations()}
	if rate > 0 {
		origin := time.Now()
		for range min(runtime.GOMAXPROCS(0), size) {
			c.pacers = append(c.pacers, newPacer(origin, rate))
		}
	}
	return c
}

// Join connects bot i. While the crowd plays, the bot has turns from then on.
func (c *Crowd) Join(ctx context.Context, i int) error {
	b, err := c.connect(ctx, i)
	if err != nil {
		return err
	}
	if b.since = time.Now(); c.rate > 0 {
		b.phase = time.Duration(spread(i) * float64(time.Second) / c.rate)
	}
	c.mu.Lock()
	c.bots = append(c.bots, b)
	c.mu.Unlock()
	if n := len(c.pacers); n > 0 {
		c.pacers[i%n].add(b)
	}
	return nil
}

const maxJoining = 128

// Ramp connects the bots from number first on. Their starts are spread evenly, at the rate at which
// the whole crowd would join within the time over. It returns when all have joined or failed: see
// [Crowd.Failures].
func (c *Crowd) Ramp(ctx context.Context, first int, over time.Duration) {
	begin := time.Now()
	var all errgroup.Group
	all.SetLimit(maxJoining)
	for i := first; i < c.size; i++ {
		at := begin.Add(time.Duration(float64(i) / float64(c.size) * float64(over)))
		if sleep.For(ctx, time.Until(at)) != nil {
			break
		}
		all.Go(func() error {
			if err := c.Join(ctx, i); err != nil && ctx.Err() == nil {
				c.fail(err)
			}
			return nil
		})
	}
	_ = all.Wait() // always nil
}

func (c *Crowd) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed++; c.cause == nil {
		c.cause = err
	}
}

// Failures returns the number of bots that could not join, and the first error.
func (c *Crowd) Failures() (failed int, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed, c.cause
}

// Ended returns the number of bots that have ended, and the last error.
func (c *Crowd) Ended() (ended int, cause error) {
	for _, b := range c.all() {
		if err := b.Err(); err != nil {
			ended, cause = ended+1, err
		}
	}
	return ended, cause
}

// Play runs the turns of all bots until stop is called, which may be called more than once. If
// rebindEvery is above 0, each bot is rebound once per interval.
func (c *Crowd) Play(rebindEvery time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, p := range c.pacers {
		all.Go(func() { p.run(ctx) })
	}
	if rebindEvery > 0 {
		all.Go(func() { c.rebind(ctx, rebindEvery) })
	}
	return func() {
		cancel()
		all.Wait()
	}
}

// rebind moves one bot at a time to a new socket. If that fails, the bot keeps its socket.
func (c *Crowd) rebind(ctx context.Context, every time.Duration) {
	next := 0
	for range sleep.Every(ctx, every/time.Duration(c.size)) {
		all := c.all()
		if i := next % c.size; i < len(all) && all[i].Conn.Rebind() == nil {
			c.rebinds.Add(1)
		}
		next++
	}
}

// Close disconnects all bots.
func (c *Crowd) Close() {
	var all sync.WaitGroup
	for _, b := range c.all() {
		all.Go(func() { _ = b.Close() }) // errors have no consequence
	}
	all.Wait()
}

func (c *Crowd) all() []*Bot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.bots)
}
