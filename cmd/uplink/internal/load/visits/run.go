// Package visits plays with many bots on several dedicated servers that hand players over to each
// other, are drained and killed. It counts the losses.
package visits

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/load"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/sleep"
	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/transport"
)

// Node is a running [Server], possibly in a separate process.
type Node interface {
	Addr() netip.AddrPort
	Handover(h HandoverRequest, players *int) error
	Drain(to []netip.AddrPort, d *Drained) error
	Calm(struct{}, *struct{}) error
	Record(_ struct{}, r *Record) error
	Kill() error // ends the server without notifying anybody
	Close() error
}

// Options configure a run. Errors name the command's flags.
type Options struct {
	Servers   int
	Players   int
	Handovers float64       // handovers per second
	For       time.Duration // duration of the handovers
	Rate      float64       // calls per second of each player
	Timeout   time.Duration // timeout of clients; 0: the default
}

const (
	maxServers = 16
	maxPlayers = 10_000
	// MinFor is the shortest Options.For.
	MinFor = 5 * time.Second
	// drains is the number of servers that are drained, kills the number of servers that are
	// killed.
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
	joinTimeout  = 30 * time.Second
	handoverStep = 100 * time.Millisecond
	// settling exceeds the time for which a server keeps sessions of players that it handed over.
	settling = 16 * time.Second
	// beforeKill and afterKill are the times for which players play before and after servers are
	// killed.
	beforeKill, afterKill = 3 * time.Second, 12 * time.Second
)

type run struct {
	options Options
	store   fleet.Store
	network transport.Network
	start   func(name string) (Node, error)
	show    func(string)
	crowd   *load.Crowd
	players []*player // by index

	mu      sync.Mutex
	live    []Node
	started int
	records []Record // records of closed servers
}

// Run plays with bots on servers that start starts. network is the bots' end of a simulated link.
// It calls show with a line about each step.
func Run(ctx context.Context, o Options, store fleet.Store, network transport.Network, start func(name string) (Node, error), show func(string)) (res *Result, err error) {
	r := &run{options: o, store: store, network: network, start: start, show: show, players: make([]*player, o.Players)}
	r.crowd = load.NewCrowd(o.Players, o.Rate, r.connect)
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
		if err := n.Calm(struct{}{}, new(struct{})); err != nil {
			return nil, err
		}
	}
	if err := sleep.For(ctx, settling); err != nil {
		return nil, err
	}
	records, err := r.recorded()
	if err != nil {
		return nil, err
	}
	res.add(append(r.records, records...), r.players)
	show(res.handovers())
	if err := r.crash(ctx, res); err != nil {
		return nil, err
	}
	return res, nil
}

func (r *run) close() (err error) {
	r.crowd.Close()
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
	stop := r.crowd.Play(0)
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
	ramp := time.Duration(r.options.Players) * time.Second / joinRate
	ctx, cancel := context.WithTimeout(ctx, joinTimeout+ramp)
	defer cancel()
	r.crowd.Ramp(ctx, 0, ramp)
	_, err := r.crowd.Failures()
	return cmp.Or(err, context.Cause(ctx))
}

// handOver hands random players over to random servers.
func (r *run) handOver(ctx context.Context) error {
	players := map[Node]int{} // players at the last step
	due := map[Node]float64{} // due handovers
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
		present := 0
		if err := n.Handover(HandoverRequest{count, others(r.live, i)}, &present); err != nil {
			return err
		}
		players[n] = present
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
	if err := n.Drain(to, &d); err != nil {
		return d, errors.Join(err, n.Close())
	}
	var record Record
	err = n.Record(struct{}{}, &record)
	r.records = append(r.records, record)
	return d, errors.Join(err, n.Close(), r.add())
}

// recorded returns the records of the live servers.
func (r *run) recorded() ([]Record, error) {
	records := make([]Record, len(r.live))
	for i, n := range r.live {
		if err := n.Record(struct{}{}, &records[i]); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// crash kills servers while all bots play.
func (r *run) crash(ctx context.Context, res *Result) error {
	for _, p := range r.players {
		p.calm = true // unacknowledged messages are lost with the server
	}
	stop := r.crowd.Play(0)
	defer stop()
	if err := sleep.For(ctx, beforeKill); err != nil {
		return err
	}
	rand.Shuffle(len(r.live), func(i, k int) { r.live[i], r.live[k] = r.live[k], r.live[i] })
	before, err := r.recorded()
	if err != nil {
		return err
	}
	begin := time.Now()
	for _, p := range r.players {
		p.journal.start(begin)
	}
	var killing errgroup.Group
	for _, n := range r.live[:kills] {
		killing.Go(n.Kill)
	}
	err = killing.Wait()
	r.live = r.live[kills:]
	if err != nil {
		return err
	}
	if err := sleep.For(ctx, afterKill); err != nil {
		return err
	}
	after, err := r.recorded()
	if err != nil {
		return err
	}
	slowest := res.returned(before, after, begin)
	r.show(res.returns())
	if slowest != 0 {
		res.Slowest = r.players[slowest-1].journal.String()
		r.show("the slowest of them: " + res.Slowest)
	}
	return nil
}
