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
// The program has no state of its own, so you can run several.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"syscall"

	"github.com/uplink-rpc/uplink/fleet/httpstore"
	"github.com/uplink-rpc/uplink/fleet/natsstore"
	"github.com/uplink-rpc/uplink/internal/web"
)

// options are the command-line flags.
type options struct {
	listen, secret string
	replicas       int
	nats           login
}

func main() {
	var o options
	flag.StringVar(&o.listen, "listen", "127.0.0.1:8081", "TCP address of the service; port 0: any free one")
	o.nats.addFlags()
	flag.IntVar(&o.replicas, "replicas", 1, "number of NATS servers that have each bucket, 1 to 5")
	flag.StringVar(&o.secret, "secret", "", "file with the secret of the fleet's servers; loopback needs none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, &o, func(url string) { log.Printf("serving %s from %s", url, o.nats.redacted()) })
	if err != nil {
		log.Fatal(err)
	}
}

// readSecret returns the secret that servers must have; an empty secret admits all servers.
func (o *options) readSecret() (string, error) {
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
	secret, err := readSecret("secret", o.secret)
	if err != nil {
		return "", err
	}
	if len(secret) < 16 {
		return "", fmt.Errorf("-secret %s: want 16 characters or more", o.secret)
	}
	return secret, nil
}

// run serves until ctx is done. It calls listening with the URL when it accepts requests.
func run(ctx context.Context, o *options, listening func(url string)) error {
	if o.replicas < 1 || o.replicas > 5 {
		return fmt.Errorf("-replicas %d: want 1 to 5", o.replicas)
	}
	secret, err := o.readSecret()
	if err != nil {
		return err
	}
	nc, err := o.nats.connect()
	if err != nil {
		return err
	}
	defer nc.Close()
	store, err := natsstore.New(ctx, nc, natsstore.Config{Replicas: o.replicas})
	if err != nil {
		return fmt.Errorf("-nats %s: %w", o.nats.redacted(), err)
	}
	defer store.Close()
	l, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("-listen: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.Handle("/", httpstore.Handler(store, secret))
	server := web.NewServer(mux)
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	listening("http://" + l.Addr().String() + "/")
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
