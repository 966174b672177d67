// Package bots load-tests a dedicated server with many clients in one process, and measures the
// server and the bots.
package bots

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/meter"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/sleep"
	"github.com/uplink-rpc/uplink/session"
	"github.com/uplink-rpc/uplink/trace"
	"github.com/uplink-rpc/uplink/transport"
)

const settling = 300 * time.Millisecond

type run struct {
	options Options
	traces  []*trace.Trace
	network transport.Network
	pacers  []*pacer
	firstID uint64 // client id of bot 0: those of several runs at one server differ
	rebinds atomic.Uint64

	// Of observe alone, one call at a time:
	late, trips *meter.Durations // since restart

	mu     sync.Mutex
	bots   []*bot // that have connected
	failed int
	cause  error // the first bot's that could not connect
}

// Run connects bots over the ramp, plays for Options.For or until ctx is done, and disconnects. The
// report covers the time after all bots connected, or all of it if ctx was done before. watch is
// called each second.
//
// If the first bot cannot connect, Run returns its error without a report. Errors of other bots
// come with the report.
func Run(ctx context.Context, traces []*trace.Trace, o Options, watch func(Progress)) (*Report, error) {
	r, err := newRun(traces, o)
	if err != nil {
		return nil, err
	}
	defer r.hangUp()
	if err := r.join(ctx, 0); err != nil {
		return nil, err
	}
	stop := r.start()
	defer stop()

	joining, joined := context.WithCancel(ctx)
	defer joined()
	var ramp sync.WaitGroup
	ramp.Go(func() {
		r.ramp(ctx)
		joined()
	})
	begin := r.observe()
	end := r.watch(joining, begin, watch)
	if ctx.Err() == nil {
		begin = r.observe()
		r.late, r.trips = meter.NewDurations(), meter.NewDurations() // all have joined
		playing, cancel := Until(ctx, o.For)
		defer cancel()
		end = r.watch(playing, begin, watch)
	}
	ramp.Wait()
	stop()
	time.Sleep(settling + o.Link.Drained())
	settled := r.observe()
	settled.at, settled.cpu = end.at, end.cpu
	return r.report(begin, settled), r.verdict()
}

func newRun(traces []*trace.Trace, o Options) (*run, error) {
	network, err := o.network()
	if err != nil {
		return nil, err
	}
	r := &run{options: o, network: network, late: meter.NewDurations(), trips: meter.NewDurations(), firstID: rand.Uint64()}
	if o.Rate == 0 {
		r.traces = traces
		return r, nil
	}
	for _, t := range traces {
		schema, err := t.Schema.AtRate(o.Rate)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
		r.traces = append(r.traces, &trace.Trace{Name: t.Name, Schema: schema, Frames: t.Frames})
	}
	origin := time.Now()
	for range min(runtime.GOMAXPROCS(0), o.Players) {
		r.pacers = append(r.pacers, newPacer(origin, o.Rate))
	}
	return r, nil
}

// start makes all joined bots call and rebind until stop is called, which may be more than once.
func (r *run) start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, p := range r.pacers {
		all.Go(func() { p.run(ctx) })
	}
	if r.options.RebindEvery > 0 {
		all.Go(func() { r.move(ctx) })
	}
	return func() {
		cancel()
		all.Wait()
	}
}

// Until returns a context that ends after d, or with ctx if d is 0.
func Until(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d > 0 {
		return context.WithTimeout(ctx, d)
	}
	return context.WithCancel(ctx)
}

// watch observes the bots each second until ctx is done, and returns the last observation.
func (r *run) watch(ctx context.Context, first observation, show func(Progress)) observation {
	before := first
	for range sleep.Every(ctx, time.Second) {
		now := r.observe()
		show(r.progress(first, before, now))
		before = now
	}
	return r.observe()
}

func (r *run) hangUp() {
	var all sync.WaitGroup
	for _, b := range r.all() {
		all.Go(func() { _ = b.conn.Close() }) // always nil
	}
	all.Wait()
}

func (r *run) all() []*bot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.bots)
}

func (r *run) verdict() error {
	failed, cause := r.failures()
	var errs []error
	if failed > 0 {
		errs = append(errs, fmt.Errorf("%d of %d players could not connect: %w", failed, r.options.Players, cause))
	}
	out := 0
	cause = nil
	for _, b := range r.all() {
		if err := b.over(); err != nil {
			out, cause = out+1, err
		}
	}
	switch {
	case errors.Is(cause, session.ErrKicked):
		errs = append(errs, fmt.Errorf("the server threw %d of %d players out: %w", out, r.options.Players, cause))
	case cause != nil:
		errs = append(errs, fmt.Errorf("%d of %d players stopped: %w", out, r.options.Players, cause))
	}
	return errors.Join(errs...)
}

// failures returns the number of bots that could not connect, and the first one's error.
func (r *run) failures() (failed int, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed, r.cause
}

const maxJoining = 128

// ramp connects all bots but the first, spread over the ramp time.
func (r *run) ramp(ctx context.Context) {
	begin, n := time.Now(), r.options.Players
	var all errgroup.Group
	all.SetLimit(maxJoining)
	for i := 1; i < n; i++ {
		if sleep.For(ctx, time.Until(begin.Add(time.Duration(float64(i)/float64(n)*float64(r.options.Ramp))))) != nil {
			break
		}
		all.Go(func() error {
			if err := r.join(ctx, i); err != nil && ctx.Err() == nil {
				r.fail(err)
			}
			return nil
		})
	}
	_ = all.Wait() // always nil
}

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

// Progress is the state of a run.
type Progress struct {
	Elapsed          time.Duration
	Connected, Asked int
	Failed           int
	// Reconnections and Rebinds are of all the time since the first observation.
	Reconnections, Rebinds uint64
	PerSecond              float64       // frames sent in the last second
	Delivered, Missed      uint64        // in the last second
	Cores                  float64       // in the last second
	RTT                    meter.Summary // in the last second
	Lateness               meter.Summary // in the last second
}

func (r *run) progress(first, before, now observation) Progress {
	d, seconds := between(before, now), now.at.Sub(before.at).Seconds()
	failed, _ := r.failures()
	return Progress{
		Reconnections: now.Reconnections - first.Reconnections, Rebinds: now.Rebinds - first.Rebinds,
		Elapsed: now.at.Sub(first.at), Connected: now.connected, Asked: r.options.Players, Failed: failed,
		PerSecond: float64(d.Sent.Frames()) / seconds, Delivered: d.Fates.Delivered, Missed: d.Fates.Missed,
		Cores: d.cpu.Seconds() / seconds, RTT: now.trips.Summary(), Lateness: now.late.Summary(),
	}
}

// String formats the progress in one short line.
func (p Progress) String() string {
	players := fmt.Sprintf("%d/%d players", p.Connected, p.Asked)
	if p.Failed > 0 {
		players += fmt.Sprintf(", %d failed", p.Failed)
	}
	return fmt.Sprintf("%.0f s: %s, %.0f/s, %s came, rtt %v, late %v ms, cpu %.2f",
		p.Elapsed.Seconds(), players, p.PerSecond, share(p.Delivered, p.Missed),
		meter.Ms(p.RTT.P99), meter.Ms(p.Lateness.P99), p.Cores)
}
