package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/uplink-rpc/uplink/ds"
)

// drainOptions are the flags that control how a server drains before it ends.
type drainOptions struct {
	to      []string
	timeout time.Duration
}

// defaultDrainTimeout is less than 30 s, the time after which Kubernetes kills a container by
// default.
const defaultDrainTimeout = 25 * time.Second

func (o *drainOptions) addFlags(f *pflag.FlagSet) {
	f.StringSliceVar(&o.to, "drain-to", nil, "IP:PORT of other servers with the same key, to which the players are handed over at the end in turn; by default servers of --fleet with the same --label")
	f.DurationVar(&o.timeout, "drain-timeout", defaultDrainTimeout, "maximum time for handing the players over at the end")
}

func (o *drainOptions) check() error {
	if o.timeout <= 0 {
		return fmt.Errorf("--drain-timeout %v: want more than 0s", o.timeout)
	}
	_, err := parseServers("drain-to", o.to)
	return err
}

// chooser returns a function that returns the servers of --drain-to in turn; nil if there are none.
func (o *drainOptions) chooser() func(*ds.Player) (ds.Target, ds.HandoverConfig, error) {
	if len(o.to) == 0 {
		return nil
	}
	servers, _ := parseServers("drain-to", o.to) // check has found no error
	next := 0
	return func(*ds.Player) (ds.Target, ds.HandoverConfig, error) {
		next++
		return ds.Target{Addrs: []netip.AddrPort{servers[next%len(servers)]}}, ds.HandoverConfig{}, nil
	}
}

// serve serves until ctx is done. Then it drains the server if other servers exist, and otherwise
// closes it.
func (o *drainOptions) serve(ctx context.Context, srv *ds.Server, inFleet bool, log *slog.Logger) error {
	choose := o.chooser()
	if choose == nil && !inFleet {
		return srv.Serve(ctx)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(context.WithoutCancel(ctx)) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	draining, stop := o.limit(context.WithoutCancel(ctx))
	defer stop()
	begun := time.Now()
	err := srv.Drain(draining, choose)
	if err == nil {
		log.Info("drained", "after", time.Since(begun))
	}
	return errors.Join(err, <-served)
}

var (
	errDrainTimeout = errors.New("the time of --drain-timeout is over")
	errSecondSignal = errors.New("a second signal")
)

// sameSignal is the time within which a second signal counts as a repetition of the first one.
// timeout(1) and terminals may send a signal both to the process and to its group.
const sameSignal = 200 * time.Millisecond

// limit returns a context for the drain. A second signal cancels it.
func (o *drainOptions) limit(ctx context.Context) (context.Context, func()) {
	ctx, stop := context.WithTimeoutCause(ctx, o.timeout, errDrainTimeout)
	ctx, cancel := context.WithCancelCause(ctx)
	begun := time.Now()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for range signals {
			if time.Since(begun) >= sameSignal {
				cancel(errSecondSignal)
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel(nil)
		stop()
	}
}
