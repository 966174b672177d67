// Uplink-nats serves the state of a fleet in NATS JetStream over HTTP, to servers and backends that
// use package fleet/httpstore. So neither uplink ds nor uplink backend depends on NATS:
//
//	uplink-nats -nats nats://10.0.0.1,nats://10.0.0.2,nats://10.0.0.3 -replicas 3 \
//	    -listen 10.0.0.6:8081 -secret fleet.secret
//	uplink backend --store http://10.0.0.6:8081/ --fleet-secret fleet.secret ...
//	uplink ds --fleet http://10.0.0.6:8081/ --fleet-secret fleet.secret --fleet-name eu-1 ...
//
// It has no state of its own: run several.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/uplink-rpc/uplink/fleet/httpstore"
	"github.com/uplink-rpc/uplink/fleet/natsstore"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8081", "TCP address of the service")
	urls := flag.String("nats", nats.DefaultURL, "URLs of the NATS servers, separated by commas")
	replicas := flag.Int("replicas", 1, "number of NATS servers that have each bucket, 1 to 5")
	secret := flag.String("secret", "", "file with the secret of the fleet's servers; none: everybody has access")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *listen, *urls, *replicas, *secret); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, listen, urls string, replicas int, secretFile string) error {
	secret := ""
	if secretFile != "" {
		text, err := os.ReadFile(secretFile)
		if err != nil {
			return err
		}
		if secret = strings.TrimSpace(string(text)); secret == "" {
			return fmt.Errorf("%s is empty", secretFile)
		}
	}
	nc, err := nats.Connect(urls, natsstore.Options()...)
	if err != nil {
		return err
	}
	defer nc.Close()
	store, err := natsstore.New(ctx, nc, natsstore.Config{Replicas: replicas})
	if err != nil {
		return err
	}
	defer store.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.Handle("/", httpstore.Handler(store, secret))
	web := http.Server{Addr: listen, Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	defer context.AfterFunc(ctx, func() { _ = web.Close() })()
	log.Printf("serving http://%s/ from %s", listen, urls)
	if err := web.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
