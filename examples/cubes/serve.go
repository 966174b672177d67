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

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/examples/cubes/live"
	"github.com/uplink-rpc/uplink/examples/cubes/page"
	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/metrics/dashboard"
)

// serveOptions are those of the command without a name.
type serveOptions struct {
	addr     string
	seed     uint64
	runs     time.Duration
	settings live.Settings
}

func (o *serveOptions) addFlags(c *cobra.Command) {
	o.settings = live.Default()
	f := c.Flags()
	f.StringVar(&o.addr, "http", "127.0.0.1:7080", "where the page is, on loopback")
	f.Uint64Var(&o.seed, "seed", 1, "what the script does")
	f.DurationVar(&o.runs, "for", 0, "how long it runs; 0: until it is stopped")
	f.StringVar(&o.settings.Way, "way", o.settings.Way, "way down at first: full, snapshots, state")
	f.Float64Var(&o.settings.Loss, "loss", o.settings.Loss, "share of packets lost at first, each way")
	f.Float64Var(&o.settings.RTT, "rtt", o.settings.RTT, "round trip at first, in ms")
	f.Float64Var(&o.settings.Jitter, "jitter", o.settings.Jitter, "how long packets are held up at first, at most, in ms")
}

// serve runs the world and the page until the context is done.
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
	l, err := live.New(ctx, world.Default(), o.seed, o.settings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	web := &http.Server{Handler: guard.Handler(page.New(l)), ReadHeaderTimeout: 10 * time.Second}
	defer func() { _ = web.Close() }()
	go func() { _ = web.Serve(listener) }() // until it is closed
	fmt.Fprintf(out, "http://%v shows the world; arrow keys, space and z play\n", listener.Addr())
	return l.Run(ctx)
}
