package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/uplink-rpc/uplink/examples/cubes/web"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/metrics/dashboard"
)

// serveOptions are the options of the root command.
type serveOptions struct {
	addr     string
	seed     uint64
	runs     time.Duration
	settings web.Settings
}

func (o *serveOptions) addFlags(c *cobra.Command) {
	o.settings = web.DefaultSettings()
	f := c.Flags()
	f.StringVar(&o.addr, "http", "127.0.0.1:7080", "address of the page, on loopback")
	f.Uint64Var(&o.seed, "seed", 1, "seed of the script")
	f.DurationVar(&o.runs, "for", 0, "time after which it stops; 0: run until it is interrupted")
	f.StringVar(&o.settings.Mode, "way", o.settings.Mode, "initial replication mode: full, snapshots, state")
	f.Float64Var(&o.settings.Loss, "loss", o.settings.Loss, "initial fraction of packets lost, each direction")
	f.Float64Var(&o.settings.RTT, "rtt", o.settings.RTT, "initial round-trip time, in ms")
	f.Float64Var(&o.settings.Jitter, "jitter", o.settings.Jitter, "initial maximum jitter, each direction, in ms")
}

// serve runs the world and the page until the context is done or the process is interrupted.
func serve(ctx context.Context, o *serveOptions, out io.Writer) (err error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if o.runs > 0 {
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, o.runs)
		defer end()
	}
	listener, err := net.Listen("tcp", o.addr)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	guard, err := dashboard.NewGuard(listener.Addr(), "")
	if err != nil {
		return err
	}
	l, err := web.NewLive(ctx, world.Default(), o.seed, o.settings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	server := &http.Server{Handler: guard.Handler(web.NewPage(l)), ReadHeaderTimeout: 10 * time.Second}
	defer func() { _ = server.Close() }()
	go func() { _ = server.Serve(listener) }() // returns after Close
	fmt.Fprintf(out, "http://%v shows the world; arrow keys, space and z play\n", listener.Addr())
	return l.Run(ctx)
}
