// Shooter is a game of laser tag in the browser. A dedicated server, bots and your own client run
// in one process, with a simulated link between the server and each client. It serves a page that
// shows the scene of your client, and measures how well prediction and lag compensation work.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/metrics"
	"github.com/uplink-rpc/uplink/metrics/dashboard"
)

type options struct {
	http string
	bots int
	runs time.Duration
	link link
}

func main() {
	o := options{link: link{RTT: 100, Loss: 0.05, Jitter: 20}}
	flag.StringVar(&o.http, "http", "127.0.0.1:7081", "address of the page, on loopback")
	flag.IntVar(&o.bots, "bots", 15, "number of bots, 1 to 60")
	flag.DurationVar(&o.runs, "for", 0, "time after which it stops; 0: run until it is interrupted")
	flag.Float64Var(&o.link.RTT, "rtt", o.link.RTT, "initial round-trip time without jitter, in ms")
	flag.Float64Var(&o.link.Loss, "loss", o.link.Loss, "initial fraction of packets lost, each direction")
	flag.Float64Var(&o.link.Jitter, "jitter", o.link.Jitter, "initial mean jitter, each direction, in ms")
	flag.Parse()
	if err := run(context.Background(), &o, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run plays and serves the page until the context is done or the process is interrupted.
func run(ctx context.Context, o *options, out io.Writer) (err error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if o.runs > 0 {
		ctx, stop = context.WithTimeout(ctx, o.runs)
		defer stop()
	}
	listener, err := net.Listen("tcp", o.http)
	if err != nil {
		return err
	}
	defer listener.Close()
	guard, err := dashboard.NewGuard(listener.Addr(), "")
	if err != nil {
		return err
	}
	m, err := newMatch(ctx, o.bots, o.link)
	if err != nil {
		return err
	}

	d := dashboard.New(m.server.Server, dashboard.Config{
		Title: "Shooter", Metrics: "../metrics",
		Name: func(p *ds.Player) string { return name(p.ClientID()) },
	})
	go d.Run(ctx)
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewServer(m.server.Server), metrics.NewClient(m.you.Conn))
	mux := http.NewServeMux()
	mux.Handle("/", newPage(m))
	mux.Handle("/dashboard/", http.StripPrefix("/dashboard", d))
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	web := &http.Server{Handler: guard.Handler(mux), ReadHeaderTimeout: 10 * time.Second}
	defer web.Close()
	go web.Serve(listener) // returns after Close
	fmt.Fprintf(out, "http://%v is the game, and http://%[1]v/dashboard/ shows its server\n", listener.Addr())
	err = m.run(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.figures()
	fmt.Fprintf(out, "%d shots: %d were decided as the shooter saw them, %d others passed an edge by less than 5 cm\n", f.Shots, f.Agreed, f.Close)
	fmt.Fprintf(out, "%.3f corrections above 5 cm per second and player\n", f.Corrections)
	return err
}
