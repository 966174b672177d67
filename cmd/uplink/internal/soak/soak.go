// Package soak has bots play to a dedicated server of the same process, over real sockets, through changing loss,
// changes of address and restarts of the server, and looks whether anything breaks or grows.
package soak

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/bots"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/sleep"
	"github.com/uplink-rpc/uplink/internal/lab/simlink"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/trace"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

const (
	// answer is how long a bot waits for the server, which may just be restarted behind a bad link.
	answer = 20 * time.Second
	// gone is how long the server stays away at a restart.
	gone = 300 * time.Millisecond
)

// run is one soak.
type run struct {
	options Options
	traces  []*trace.Trace
	server  *server
	network *simnet.WrappedNetwork // the bots'
	show    func(Phase)

	mu   sync.Mutex
	last bots.Progress
}

// Run soaks for Options.For, rounded down to whole rounds of phases, and calls show after each phase. The first trace's
// schema is that of all. The error says what broke or grew; it is ctx's if that was done before.
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
	srv, err := newServer(o, traces)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, srv.stop()) }()
	network, err := simnet.WrapNetwork(o.Network, simnet.Config{}, simnet.Config{})
	if err != nil {
		return err
	}
	r := &run{options: o, traces: traces, server: srv, network: network, show: show}
	playing, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan error, 1)
	go func() {
		_, err := bots.Run(playing, traces, r.bots(), r.note)
		if err == nil && playing.Err() == nil {
			err = errors.New("the bots have stopped")
		}
		cancel(err) // nobody plays on
		done <- err
	}()
	err = r.rounds(playing)
	cancel(nil)
	return errors.Join(err, <-done)
}

// bots are the players: with tokens of their own, and on the move.
func (r *run) bots() bots.Options {
	o := bots.Options{
		To: r.server.addr, Players: r.options.Players, Rate: r.traces[0].Schema.RateHz(), Ramp: r.options.Phase / 2,
		Wait: answer, Codec: rpcdelta.DefaultCodec, Link: simlink.Config{Burst: 1}, Network: r.network,
		Issuer: r.server.key.Issuer(), RebindEvery: 2 * r.options.Phase,
	}
	return o
}

// note keeps what the bots say of themselves.
func (r *run) note(p bots.Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = p
}

func (r *run) progress() bots.Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// rounds goes through all conditions again and again. What there is at the end of a round must not grow.
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

// phase goes through one condition.
func (r *run) phase(ctx context.Context, n int, c *condition) error {
	before := r.server.counts()
	if c.restart != stays {
		if err := r.restart(ctx, c.restart); err != nil {
			return err
		}
	}
	up, down := c.link.Up(), c.link.Down()
	if err := r.network.Set(up, down); err != nil {
		return err
	}
	if err := sleep.For(ctx, r.options.Phase); err != nil {
		return err
	}
	p := r.result(n, c, before)
	r.show(p)
	return p.verdict()
}

// restart ends the server and starts another one. If it crashes, no player hears of its end.
func (r *run) restart(ctx context.Context, how restart) error {
	if how == crashes {
		deaf := simnet.Config{Loss: 1}
		if err := r.network.Set(simnet.Config{}, deaf); err != nil {
			return err
		}
	}
	if err := r.server.stop(); err != nil {
		return err
	}
	return errors.Join(sleep.For(ctx, gone), r.server.start())
}

// condition is what the players and the server go through for a phase.
type condition struct {
	name    string
	link    simlink.Config
	restart restart // at the beginning of it
}

// restart is how the server ends before it is there again.
type restart uint8

const (
	stays   restart = iota
	closes          // it tells the players
	crashes         // it does not
)

// conditions make a round. The last one lets everything settle, so that rounds can be compared.
var conditions = []condition{
	{name: "loss 2 %", link: simlink.Config{RTT: 30 * time.Millisecond, Loss: 0.02, Burst: 1}},
	{name: "loss 10 % in bursts", link: simlink.Config{RTT: 80 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.1, Burst: 4}},
	{name: "server closes", link: simlink.Config{RTT: 30 * time.Millisecond, Loss: 0.02, Burst: 1}, restart: closes},
	{name: "loss 30 %", link: simlink.Config{RTT: 120 * time.Millisecond, Jitter: 20 * time.Millisecond, Loss: 0.3, Burst: 1}},
	{name: "server crashes", link: simlink.Config{RTT: 30 * time.Millisecond, Loss: 0.05, Burst: 2}, restart: crashes},
	{name: "calm", link: simlink.Config{RTT: 10 * time.Millisecond, Burst: 1}},
}

// Options says how long to soak, and what. Errors name the command's flags.
type Options struct {
	Players int
	For     time.Duration
	Phase   time.Duration     // how long each condition lasts
	Network transport.Network // nil means UDP
}

// The bounds of options.
const (
	maxPlayers = 2000
	// LeastPhase is what connections that were lost need to be there again.
	LeastPhase = 3 * time.Second
)

// Validate says which flag is wrong, and how.
func (o *Options) Validate() error {
	switch {
	case o.Players < 1 || o.Players > maxPlayers:
		return fmt.Errorf("--players %d: want 1 to %d", o.Players, maxPlayers)
	case o.Phase < LeastPhase:
		return fmt.Errorf("--phase %v: want at least %v", o.Phase, LeastPhase)
	case o.For < o.least():
		return fmt.Errorf("--for %v: want at least %v, which is two rounds of %d phases", o.For, o.least(), len(conditions))
	}
	return nil
}

// least is the time of two rounds: what the second one holds is compared with what the first one held.
func (o *Options) least() time.Duration { return time.Duration(2*len(conditions)) * o.Phase }

// Phase is what came of one, and of all before it where it says so.
type Phase struct {
	Number    int    `json:"phase"`
	Condition string `json:"condition"`
	Connected int    `json:"connected"`
	Players   int    `json:"players"`
	Frames    uint64 `json:"frames"`
	Missed    uint64 `json:"missed"`
	// Since the beginning:
	Verified       uint64 `json:"verified"`
	Mismatched     uint64 `json:"mismatched"`
	Desync         uint64 `json:"desync"`
	Reconnections  uint64 `json:"reconnections"`
	SocketsChanged uint64 `json:"sockets_changed"`
	Usage          Usage  `json:"usage"`
	settled        bool   // a condition in which all must be connected
}

func (r *run) result(n int, c *condition, before counts) Phase {
	now, bots := r.server.counts(), r.progress()
	good, bad := r.server.check.Counts()
	return Phase{
		Number: n + 1, Condition: c.name, Connected: bots.Connected, Players: r.options.Players,
		Frames: now.frames - before.frames, Missed: now.missed - min(now.missed, before.missed), // a late frame takes one back
		Verified: good, Mismatched: bad, Desync: now.desync,
		Reconnections: bots.Reconnections, SocketsChanged: bots.Rebinds,
		Usage: look(), settled: c.link.Loss == 0,
	}
}

// verdict is an error if something broke.
func (p Phase) verdict() error {
	switch {
	case p.Mismatched > 0:
		return fmt.Errorf("%d of %d frames are not what the bots played", p.Mismatched, p.Mismatched+p.Verified)
	case p.Desync > 0:
		return fmt.Errorf("%d frames referred to another baseline than the server has", p.Desync)
	case p.Frames == 0:
		return errors.New("no frame came in a whole phase")
	case p.settled && p.Connected < p.Players:
		return fmt.Errorf("%d of %d players have not come back", p.Players-p.Connected, p.Players)
	}
	return nil
}

// String gives the phase as a line.
func (p Phase) String() string {
	return fmt.Sprintf("%3d %-20s %d/%d players, %d frames, %d missed; in all %d verified, %d mismatched, %d reconnections, %d sockets changed; %v",
		p.Number, p.Condition, p.Connected, p.Players, p.Frames, p.Missed, p.Verified, p.Mismatched, p.Reconnections, p.SocketsChanged, p.Usage)
}
