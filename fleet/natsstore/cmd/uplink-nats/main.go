// Uplink-nats serves the state of a fleet in NATS JetStream over HTTP, to servers and backends that
// use package fleet/httpstore. With it, neither uplink ds nor uplink backend depends on NATS:
//
//	uplink-nats -nats nats://10.0.0.1,nats://10.0.0.2,nats://10.0.0.3 -replicas 3 \
//	    -listen 10.0.0.6:8081 -secret fleet.secret
//	uplink backend --store http://10.0.0.6:8081/ --fleet-secret fleet.secret ...
//	uplink ds --fleet http://10.0.0.6:8081/ --fleet-secret fleet.secret --fleet-name eu-1 ...
//
// Whoever can reach NATS can change the state. Protect NATS with a password, pass it to the program
// with -nats-user or -nats-creds, and use TLS (-nats-ca) outside of a private network.
//
// The program has no state of its own, so you can run several: --store and --fleet take their URLs,
// separated by commas. It connects to NATS again and again, and reads passwords for each
// connection. While NATS does not work, the log, the metric uplink_store_up and /readyz say why.
// /metrics, /healthz and /readyz need no secret.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/uplink-rpc/uplink/fleet/httpstore"
	"github.com/uplink-rpc/uplink/fleet/natsstore"
	"github.com/uplink-rpc/uplink/internal/jsonlog"
	"github.com/uplink-rpc/uplink/internal/status"
	"github.com/uplink-rpc/uplink/internal/storemetrics"
	"github.com/uplink-rpc/uplink/internal/web"
)

// options are the command-line flags.
type options struct {
	listen, secret string
	replicas       int
	nats           login
	logFormat      string
	logLevel       slog.Level
}

func main() {
	var o options
	flag.StringVar(&o.listen, "listen", "127.0.0.1:8081", "TCP address of the service; port 0: any free one")
	o.nats.addFlags()
	flag.IntVar(&o.replicas, "replicas", 1, "number of NATS servers that have each bucket, 1 to 5")
	flag.StringVar(&o.secret, "secret", "", "file with the secret of the fleet's servers; loopback needs none")
	flag.StringVar(&o.logFormat, "log-format", "text", "format of log records on standard error: text or json")
	flag.TextVar(&o.logLevel, "log-level", slog.LevelInfo, "minimum `level` of log records: debug, info, warn or error")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := start(ctx, &o); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func start(ctx context.Context, o *options) error {
	var h slog.Handler
	switch o.logFormat {
	case "text":
		h = slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: o.logLevel})
	case "json":
		h = jsonlog.New(os.Stderr, o.logLevel)
	default:
		return fmt.Errorf("-log-format %q: want text or json", o.logFormat)
	}
	log := slog.New(h)
	return run(ctx, o, log, func(url string) { log.Info("serving", "url", url, "nats", o.nats.redacted()) })
}

// readSecret returns the secret that servers must have; an empty secret admits all servers.
func (o *options) readSecret(log *slog.Logger) (string, error) {
	host, _, err := net.SplitHostPort(o.listen)
	if err != nil {
		return "", fmt.Errorf("-listen: %w", err)
	}
	if o.secret == "" {
		if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.IsLoopback()) {
			return "", fmt.Errorf("-listen %s: on this address others can reach it: set -secret", o.listen)
		}
		return "", nil
	}
	secret, err := readSecret("secret", o.secret, log)
	if err != nil {
		return "", err
	}
	if len(secret) < 16 {
		return "", fmt.Errorf("-secret %s: want 16 characters or more", o.secret)
	}
	return secret, nil
}

// run serves until ctx is done. It calls listening with the URL when it accepts requests, whether
// NATS works or not.
func run(ctx context.Context, o *options, log *slog.Logger, listening func(url string)) error {
	if o.replicas < 1 || o.replicas > 5 {
		return fmt.Errorf("-replicas %d: want 1 to 5", o.replicas)
	}
	secret, err := o.readSecret(log)
	if err != nil {
		return err
	}
	options, err := o.nats.options(log)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("-listen: %w", err)
	}
	defer l.Close() //nolint:errcheck // the process ends
	store, err := natsstore.New(o.nats.urls, natsstore.Config{Replicas: o.replicas, Options: options, Logger: log})
	if err != nil {
		return fmt.Errorf("-nats %s: %w", o.nats.redacted(), err)
	}
	defer store.Close()
	calls := storemetrics.New(store, store.Check)
	mux := http.NewServeMux()
	if err := status.Handle(mux, nil, store.Check, calls, natsMetrics(store)); err != nil {
		return err
	}
	mux.Handle("/", httpstore.Handler(calls, secret))
	server := web.NewServer(mux)
	server.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	listening("http://" + l.Addr().String() + "/")
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// natsCounts are the metrics of the connection to NATS.
type natsCounts struct {
	store               *natsstore.Store
	reconnects, created *prometheus.Desc
}

func natsMetrics(store *natsstore.Store) natsCounts {
	return natsCounts{
		store,
		prometheus.NewDesc("uplink_nats_reconnects_total", "Connections to NATS after the first one.", nil, nil),
		prometheus.NewDesc("uplink_nats_buckets_created_total", "Buckets that NATS did not have: 4 at the first start, more if it lost its data.", nil, nil),
	}
}

// Describe implements [prometheus.Collector].
func (c natsCounts) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.reconnects
	ch <- c.created
}

// Collect implements [prometheus.Collector].
func (c natsCounts) Collect(ch chan<- prometheus.Metric) {
	st := c.store.Stats()
	ch <- prometheus.MustNewConstMetric(c.reconnects, prometheus.CounterValue, float64(st.Reconnects))
	ch <- prometheus.MustNewConstMetric(c.created, prometheus.CounterValue, float64(st.Created))
}
