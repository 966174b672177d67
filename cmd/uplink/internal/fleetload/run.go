// Package fleetload plays with many bots on several dedicated servers that hand players over to
// each other, are drained and killed, and counts what is lost.
package fleetload

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/sleep"
	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/transport"
)

// Node is a running [Server], which may be in a process of its own.
type Node interface {
	Addr() netip.AddrPort
	Handover(count int, to []netip.AddrPort) (players int, err error)
	Drain(to []netip.AddrPort) (Drained, error)
	Calm() error
	Record() (Record, error)
	Kill() error // without a word to anybody
	Close() error
}

// Options configure a run. Errors name the command's flags.
type Options struct {
	Servers   int
	Players   int
	Handovers float64       // per second
	For       time.Duration // of handovers
	Rate      float64       // calls per second of each player
	Timeout   time.Duration // of clients; 0: the default
}

const (
	maxServers = 16
	maxPlayers = 10_000
	// MinFor is the shortest Options.For.
	MinFor = 5 * time.Second
	// drains and kills are the numbers of servers that are drained, and killed.
	drains, kills = 2, 2
)

// Validate returns an error that names an invalid flag.
func (o *Options) Validate() error {
	switch {
	case o.Servers < kills+1 || o.Servers > maxServers:
		return fmt.Errorf("--fleet %d: want %d to %d", o.Servers, kills+1, maxServers)
	case o.Players < 1 || o.Players > maxPlayers:
		return fmt.Errorf("--players %d: want 1 to %d", o.Players, maxPlayers)
	case !(o.Handovers >= 0 && o.Handovers <= float64(o.Players)):
		return fmt.Errorf("--handovers %v: want 0 to --players", o.Handovers)
	case o.For < MinFor:
		return fmt.Errorf("--for %v: want at least %v", o.For, MinFor)
	case !(o.Rate >= 1 && o.Rate <= 240):
		return fmt.Errorf("--rate %v: want 1 to 240", o.Rate)
	}
	return nil
}

const (
	joinRate     = 100 // players per second
	maxJoining   = 64
	joinTimeout  = 30 * time.Second
	handoverStep = 100 * time.Millisecond
	// settling is longer than a server keeps sessions of players that it handed over.
	settling = 16 * time.Second
	// beforeKill and afterKill are how long players play before and after servers are killed.
	beforeKill, afterKill = 3 * time.Second, 12 * time.Second
)

type run struct {
	options Options
	store   fleet.Store
	network transport.Network
	start   func(name string) (Node, error)
	show    func(string)
	bots    []atomic.Pointer[bot] // nil: not connected yet

	mu      sync.Mutex
	live    []Node
	started int
	records []Record // of servers that are closed
}

// Run plays with bots on servers that start starts, over network: it is the bots' end of a
// simulated link. It calls show with a line about each step.
func Run(ctx context.Context, o Options, store fleet.Store, network transport.Network, start func(name string) (Node, error), show func(string)) (res *Result, err error) {
	r := &run{options: o, store: store, network: network, start: start, show: show, bots: make([]atomic.Pointer[bot], o.Players)}
	defer func() { err = errors.Join(err, r.close()) }()
	for range o.Servers {
		if err := r.add(); err != nil {
			return nil, err
		}
	}
	if err := r.announced(ctx); err != nil {
		return nil, err
	}
	res = &Result{Servers: o.Servers, Players: o.Players}
	if err := r.planned(ctx, res); err != nil {
		return nil, err
	}
	for _, n := range r.live {
		if err := n.Calm(); err != nil {
			return nil, err
		}
	}
	if err := sleep.For(ctx, settling); err != nil {
		return nil, err
	}
	if err := r.collect(res); err != nil {
		return nil, err
	}
	show(res.handovers())
	if err := r.crash(ctx, res); err != nil {
		return nil, err
	}
	return res, nil
}

func (r *run) close() (err error) {
	var all errgroup.Group
	all.SetLimit(maxJoining)
	for i := range r.bots {
		if b := r.bots[i].Load(); b != nil {
			all.Go(b.conn.Close)
		}
	}
	err = all.Wait()
	for _, n := range r.live {
		err = errors.Join(err, n.Close())
	}
	return err
}

// add starts a server.
func (r *run) add() error {
	n, err := r.start(fmt.Sprint("s", r.started))
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started++
	r.live = append(r.live, n)
	return nil
}

// announced waits until all servers are in the directory.
func (r *run) announced(ctx context.Context) error {
	for {
		servers, err := r.store.Servers(ctx)
		if err != nil || len(servers) >= r.options.Servers {
			return err
		}
		if err := sleep.For(ctx, handoverStep); err != nil {
			return err
		}
	}
}

// planned joins all players, hands them over, and drains servers.
func (r *run) planned(ctx context.Context, res *Result) error {
	stop := r.play(ctx)
	defer stop()
	begin := time.Now()
	if err := r.join(ctx); err != nil {
		return err
	}
	r.show(fmt.Sprintf("%d players joined %d servers in %v", r.options.Players, r.options.Servers, time.Since(begin).Round(time.Millisecond)))
	moving, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 1)
	go func() { failed <- r.handOver(moving) }()
	for range drains {
		if err := sleep.For(ctx, r.options.For/(drains+1)); err != nil {
			return err
		}
		d, err := r.drain()
		if err != nil {
			return err
		}
		r.show(fmt.Sprintf("drained a server of %d players in %v", d.Players, d.Took.Round(time.Millisecond)))
		res.Drains = append(res.Drains, d)
	}
	if err := sleep.For(ctx, r.options.For/(drains+1)); err != nil {
		return err
	}
	cancel()
	return <-failed
}

func (r *run) join(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout+time.Duration(r.options.Players)*time.Second/joinRate)
	defer cancel()
	var all errgroup.Group
	all.SetLimit(maxJoining)
	for i := range r.bots {
		if err := sleep.For(ctx, time.Second/joinRate); err != nil {
			break
		}
		all.Go(func() error {
			b, err := r.newBot(ctx, uint64(i+1))
			if err == nil {
				r.bots[i].Store(b)
			}
			return err
		})
	}
	return all.Wait()
}

// turns is the number of groups of bots that call one after the other.
const turns = 8

// play makes all bots call until stop is called.
func (r *run) play(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	workers := min(runtime.GOMAXPROCS(0), len(r.bots))
	for w := range workers {
		all.Go(func() {
			slice := 0
			for range sleep.Every(ctx, time.Duration(float64(time.Second)/r.options.Rate/turns)) {
				for i := w + slice*workers; i < len(r.bots); i += workers * turns {
					if b := r.bots[i].Load(); b != nil {
						b.play()
					}
				}
				slice = (slice + 1) % turns
			}
		})
	}
	return sync.OnceFunc(func() {
		cancel()
		all.Wait()
	})
}

// handOver hands random players over to random servers.
func (r *run) handOver(ctx context.Context) error {
	players := map[Node]int{} // at the last step
	due := map[Node]float64{} // handovers
	for range sleep.Every(ctx, handoverStep) {
		if err := r.handOverDue(players, due); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) handOverDue(players map[Node]int, due map[Node]float64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	total := 0
	for _, n := range r.live {
		total += players[n]
	}
	for i, n := range r.live {
		if total > 0 {
			due[n] += r.options.Handovers * handoverStep.Seconds() * float64(players[n]) / float64(total)
		}
		count := int(due[n])
		due[n] -= float64(count)
		var err error
		if players[n], err = n.Handover(count, others(r.live, i)); err != nil {
			return err
		}
	}
	return nil
}

// others returns the addresses of all servers but one.
func others(all []Node, i int) (addrs []netip.AddrPort) {
	for k, n := range all {
		if k != i {
			addrs = append(addrs, n.Addr())
		}
	}
	return addrs
}

// drain drains the first server and starts another one instead.
func (r *run) drain() (d Drained, err error) {
	r.mu.Lock()
	n, to := r.live[0], others(r.live, 0)
	r.live = append([]Node(nil), r.live[1:]...)
	r.mu.Unlock()
	d, err = n.Drain(to)
	if err != nil {
		return d, errors.Join(err, n.Close())
	}
	record, err := n.Record()
	r.records = append(r.records, record)
	return d, errors.Join(err, n.Close(), r.add())
}

// collect counts what all servers have recorded.
func (r *run) collect(res *Result) error {
	records := r.records
	for _, n := range r.live {
		record, err := n.Record()
		if err != nil {
			return err
		}
		records = append(records, record)
	}
	res.add(records, r.bots)
	return nil
}
