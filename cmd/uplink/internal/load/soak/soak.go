// Package soak runs bots against two dedicated servers in the same process, over real sockets with
// varying loss, path migrations, worlds, handovers and restarts of one server, and checks for
// failures and growth.
package soak

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/load"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/sleep"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/simlink"
	"github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

const (
	// answer is a bot's timeout. During it, the server may be restarting behind a lossy link.
	answer = 20 * time.Second
	// gone is the time for which the server does not run in a restart.
	gone = 300 * time.Millisecond
)

type run struct {
	options Options
	traces  []*trace.Trace
	servers *servers
	network *simnet.WrappedNetwork // network of the bots
	show    func(Phase)
	last    atomic.Pointer[load.Progress]

	snapshots atomic.Uint64
}

// Run runs for Options.For, rounded down to whole rounds of phases, and calls show after each
// phase. All traces have the schema of the first one. The error describes the failure or growth, or
// is the error of ctx.
func Run(ctx context.Context, traces []*trace.Trace, o Options, show func(Phase)) error {
	before := look()
	if err := soak(ctx, traces, o, show); err != nil {
		return err
	}
	if what := before.grown(before.settled()); len(what) > 0 {
		return fmt.Errorf("after the end there is more than before: %s", strings.Join(what, ", "))
	}
	return nil
}

func soak(ctx context.Context, traces []*trace.Trace, o Options, show func(Phase)) (err error) {
	srv, err := newServers(o, traces)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, srv.close()) }()
	network, err := simnet.WrapNetwork(o.Network, simnet.Config{}, simnet.Config{})
	if err != nil {
		return err
	}
	r := &run{options: o, traces: traces, servers: srv, network: network, show: show}
	r.last.Store(&load.Progress{})
	playing, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan error, 1)
	go func() {
		_, err := load.Run(playing, traces, r.bots(), func(p load.Progress) { r.last.Store(&p) })
		if err == nil && playing.Err() == nil {
			err = errors.New("the bots have stopped")
		}
		cancel(err) // no bot plays
		done <- err
	}()
	err = r.rounds(playing)
	cancel(nil)
	return errors.Join(err, <-done)
}

func (r *run) bots() load.Options {
	return load.Options{
		To: r.servers.addrs[0].String(), Others: r.servers.addrs[1:], Joined: r.subscribe, Players: r.options.Players, Rate: r.traces[0].Schema.RateHz(), Ramp: r.options.Phase / 2,
		Wait: answer, Codec: rpcdelta.DefaultCodec, Link: simlink.Config{Burst: 1}, Network: r.network,
		Issuer: r.servers.key.Issuer(), RebindEvery: 2 * r.options.Phase,
	}
}

// subscribe subscribes a bot to the world.
func (r *run) subscribe(ctx context.Context, c *client.Conn) error {
	return load.SubscribeThings(ctx, c, worldName, &r.snapshots)
}

// rounds repeats all conditions. Resource usage must not grow from round to round.
func (r *run) rounds(ctx context.Context) error {
	round := time.Duration(len(conditions)) * r.options.Phase
	var first Usage
	for n := range int(r.options.For / round) {
		for i := range conditions {
			if err := r.phase(ctx, n*len(conditions)+i, &conditions[i]); err != nil {
				return err
			}
		}
		if n == 0 {
			first = look()
		} else if what := first.grown(first.settled()); len(what) > 0 {
			return fmt.Errorf("round %d has more than the first: %s", n+1, strings.Join(what, ", "))
		}
	}
	return nil
}

func (r *run) phase(ctx context.Context, n int, c *condition) error {
	before, shown, moved := r.servers.counts(), r.snapshots.Load(), r.servers.handovers.Load()
	if c.restart != stays {
		if err := r.restart(ctx, c.restart); err != nil {
			return err
		}
	}
	if err := r.network.Set(c.link.Up(), c.link.Down()); err != nil {
		return err
	}
	if err := sleep.For(ctx, r.options.Phase); err != nil {
		return err
	}
	p := r.result(n, c, before)
	p.Snapshots, p.Handovers = r.snapshots.Load()-shown, r.servers.handovers.Load()-moved
	r.show(p)
	return p.verdict()
}

// restart ends the server and starts another one. If how is a crash, players are not notified.
func (r *run) restart(ctx context.Context, how restart) error {
	if how == crashes {
		if err := r.network.Set(simnet.Config{}, simnet.Config{Loss: 1}); err != nil {
			return err
		}
	}
	if err := r.servers.stop(restarting); err != nil {
		return err
	}
	return errors.Join(sleep.For(ctx, gone), r.servers.start(restarting, r.servers.addrs[restarting].String()))
}

// condition describes the network and the server in a phase.
type condition struct {
	name    string
	link    simlink.Config
	restart restart // restart at the start of the phase
}

// restart is how the server stops before a restart.
type restart uint8

const (
	stays   restart = iota
	closes          // notifies the players
	crashes         // does not notify the players
)

// conditions are the phases of a round. In the last one the system settles, so that rounds are
// comparable.
var conditions = []condition{
	{name: "loss 2 %", link: simlink.Config{RTT: 30 * time.Millisecond, Loss: 0.02, Burst: 1}},
	{name: "loss 10 % in bursts", link: simlink.Config{RTT: 80 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.1, Burst: 4}},
	{name: "server closes", link: simlink.Config{RTT: 30 * time.Millisecond, Loss: 0.02, Burst: 1}, restart: closes},
	{name: "loss 30 %", link: simlink.Config{RTT: 120 * time.Millisecond, Jitter: 20 * time.Millisecond, Loss: 0.3, Burst: 1}},
	{name: "server crashes", link: simlink.Config{RTT: 30 * time.Millisecond, Loss: 0.05, Burst: 2}, restart: crashes},
	{name: "calm", link: simlink.Config{RTT: 10 * time.Millisecond, Burst: 1}},
}

// Options configure a run. Errors name the command's flags.
type Options struct {
	Players int
	For     time.Duration
	Phase   time.Duration     // duration of each phase
	Network transport.Network // nil: UDP
}

// The bounds of options.
const (
	maxPlayers = 2000
	// MinPhase is the time that lost connections need to reconnect.
	MinPhase = 3 * time.Second
)

// Validate returns an error that names an invalid flag.
func (o *Options) Validate() error {
	switch {
	case o.Players < 1 || o.Players > maxPlayers:
		return fmt.Errorf("--players %d: want 1 to %d", o.Players, maxPlayers)
	case o.Phase < MinPhase:
		return fmt.Errorf("--phase %v: want at least %v", o.Phase, MinPhase)
	case o.For < o.least():
		return fmt.Errorf("--for %v: want at least %v, which is two rounds of %d phases", o.For, o.least(), len(conditions))
	}
	return nil
}

// least returns the minimum time: two rounds, which are compared.
func (o *Options) least() time.Duration { return time.Duration(2*len(conditions)) * o.Phase }

// Phase is the result of one phase.
type Phase struct {
	Number    int    `json:"phase"`
	Condition string `json:"condition"`
	Connected int    `json:"connected"`
	Players   int    `json:"players"`
	Frames    uint64 `json:"frames"`
	Missed    uint64 `json:"missed"`
	Snapshots uint64 `json:"snapshots"` // snapshots received
	Handovers uint64 `json:"handovers"` // handovers completed
	// Counts since the start:
	Verified       uint64 `json:"verified"`
	Mismatched     uint64 `json:"mismatched"`
	Desync         uint64 `json:"desync"`
	Reconnections  uint64 `json:"reconnections"`
	SocketsChanged uint64 `json:"sockets_changed"`
	Usage          Usage  `json:"usage"`
	settled        bool   // all players must be connected
}

func (r *run) result(n int, c *condition, before counts) Phase {
	now, bots := r.servers.counts(), r.last.Load()
	good, bad := r.servers.check.Counts()
	return Phase{
		Number: n + 1, Condition: c.name, Connected: bots.Connected, Players: r.options.Players,
		// A late frame reduces the count.
		Frames: now.Frames - before.Frames, Missed: now.Missed - min(now.Missed, before.Missed),
		Verified: good, Mismatched: bad, Desync: now.Desync,
		Reconnections: bots.Reconnections, SocketsChanged: bots.Rebinds,
		Usage: look(), settled: c.link.Loss == 0,
	}
}

func (p Phase) verdict() error {
	switch {
	case p.Mismatched > 0:
		return fmt.Errorf("%d of %d frames are not what the bots played", p.Mismatched, p.Mismatched+p.Verified)
	case p.Desync > 0:
		return fmt.Errorf("%d frames referred to another baseline than the server has", p.Desync)
	case p.Frames == 0:
		return errors.New("no frame came in a whole phase")
	case p.Snapshots == 0:
		return errors.New("no snapshot came in a whole phase")
	case p.settled && p.Handovers == 0:
		return errors.New("nobody was handed over in a whole phase")
	case p.settled && p.Connected < p.Players:
		return fmt.Errorf("%d of %d players have not come back", p.Players-p.Connected, p.Players)
	}
	return nil
}

// String formats the phase as a line.
func (p Phase) String() string {
	return fmt.Sprintf("%3d %-20s %d/%d players, %d frames, %d missed, %d snapshots, %d handovers; in all %d verified, %d mismatched, %d reconnections, %d sockets changed; %v",
		p.Number, p.Condition, p.Connected, p.Players, p.Frames, p.Missed, p.Snapshots, p.Handovers, p.Verified, p.Mismatched, p.Reconnections, p.SocketsChanged, p.Usage)
}
