package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/fleet/agones"
)

// agonesOptions are the flags of a server that Agones runs.
type agonesOptions struct {
	on   bool
	port string
}

func (o *agonesOptions) addFlags(f *pflag.FlagSet) {
	f.BoolVar(&o.on, "agones", false, "call the SDK server of Agones, at the port in the environment variable AGONES_SDK_HTTP_PORT")
	f.StringVar(&o.port, "agones-port", "default", "name of the UDP port in the fleet's manifest, whose public address tokens name")
}

func (o *agonesOptions) check(addrs []string) error {
	if o.on && len(addrs) > 0 {
		return errors.New("--agones: it assigns the address; leave --addr out")
	}
	return nil
}

// agonesTimeout limits the calls to the SDK server when the server ends.
const agonesTimeout = 5 * time.Second

// run calls serve, and uses the SDK server at the same time. Players can join after Agones has
// assigned the address. If the SDK server fails, the context of serve is canceled.
func (o *agonesOptions) run(ctx context.Context, srv *ds.Server, log *slog.Logger, serve func(context.Context) error) error {
	if !o.on {
		return serve(ctx)
	}
	sdk, err := agones.New(agones.Config{})
	if err != nil {
		return err
	}
	var (
		work     sync.WaitGroup
		ready    atomic.Bool
		notReady error
	)
	reporting, stop := context.WithCancel(context.WithoutCancel(ctx))
	serving, cancel := context.WithCancel(ctx)
	defer cancel()
	work.Go(func() {
		sdk.Run(reporting, func() (players, capacity int) {
			t := srv.Stats().Transport
			return t.Open, t.MaxConns
		}, func(err error) { log.Warn("the SDK server of Agones does not answer", "error", err) })
	})
	work.Go(func() {
		if notReady = o.announce(serving, sdk, srv, log); notReady != nil {
			cancel()
			return
		}
		ready.Store(true)
	})
	work.Go(func() {
		<-serving.Done()
		if !ready.Load() {
			return
		}
		end, done := context.WithTimeout(context.WithoutCancel(ctx), agonesTimeout)
		defer done()
		if err := sdk.Allocate(end); err != nil { // so that Agones does not allocate it while it drains
			log.Warn("not allocated", "error", err)
		}
	})
	err = serve(serving)
	cancel()
	stop()
	work.Wait()
	end, done := context.WithTimeout(context.WithoutCancel(ctx), agonesTimeout)
	defer done()
	if ctx.Err() != nil && errors.Is(notReady, context.Cause(ctx)) {
		notReady = nil // the server ended earlier
	}
	return errors.Join(err, notReady, sdk.Shutdown(end))
}

// announce reports that the server is ready, and sets the address that Agones has assigned.
func (o *agonesOptions) announce(ctx context.Context, sdk *agones.SDK, srv *ds.Server, log *slog.Logger) error {
	gs, err := sdk.Ready(ctx)
	if err != nil {
		return fmt.Errorf("--agones: %w", err)
	}
	addr := gs.Addr(o.port)
	if !addr.IsValid() {
		return fmt.Errorf("--agones: the address is %q: want an IP address and a port with the name %q", gs.Address, o.port)
	}
	if err := srv.SetAddrs(addr); err != nil {
		return fmt.Errorf("--agones: %w", err)
	}
	log.Info("ready", "addr", addr, "server", gs.Name)
	return nil
}
