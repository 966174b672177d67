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
	"github.com/uplink-rpc/uplink/internal/lab/simlink"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/trace"
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
	if err := pause(ctx, r.options.Phase); err != nil {
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
	return errors.Join(pause(ctx, gone), r.server.start())
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
