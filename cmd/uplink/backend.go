package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/backend"
	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/fleet/httpstore"
	"github.com/uplink-rpc/uplink/internal/web"
	"github.com/uplink-rpc/uplink/token"
)

type backendOptions struct {
	listen, store           string
	keys                    []string
	gameSecret, fleetSecret string
	lifetime                time.Duration
	logging                 logging
}

func newBackendCommand() *cobra.Command {
	var o backendOptions
	c := &cobra.Command{
		Use:   "backend",
		Short: "Issue connect tokens for the servers of a fleet, and show them",
		Long: `backend is a small HTTP service for a fleet of servers: it keeps their directory, issues connect tokens, and shows the
fleet on a page.

Servers announce themselves with uplink ds --fleet http://ADDRESS/fleet/, or with package fleet/httpstore. The game's
login service, which has authenticated the player in its own way, requests a token:

  POST /token {"client": "42", "labels": {"map": "dust"}}

and gets a server to dial with a token for it: a random one with these labels, more likely one with more room. It passes
both to the client. "avoid": ["ADDRESS:PORT"] excludes servers that do not answer the player. Other paths: / is the
page, /servers the directory as JSON, /metrics is for Prometheus, /healthz answers while the process runs, and /readyz
has the status 503 while the store of the fleet fails.

To rotate keys, add the new issuer key with another --key and send SIGHUP, which reads the files again. Each server
announces which key it has, and gets tokens of that one. On addresses other than loopback, both secrets are required;
put a proxy with TLS in front. Without a secret only programs of this machine are served: no web page of another site,
and no proxy.

The state is in memory, or with --store at another service, such as the command of module fleet/natsstore.`,
		Example: `  uplink backend
  uplink backend --listen 10.0.0.5:8080 --key ds.key.issuer --game-secret game.secret --fleet-secret fleet.secret
  uplink backend --store http://10.0.0.6:8081/ --fleet-secret fleet.secret --key ds.key.issuer`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return usageError{err}
			}
			return o.run(cmd)
		},
	}
	f := c.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:8080", "TCP address of the service; port 0: any free one")
	f.StringArrayVar(&o.keys, "key", nil, "file with an issuer key; without one, tokens are for servers on loopback; may be repeated")
	f.StringVar(&o.gameSecret, "game-secret", "", "file with the secret of the game's login service, which is also the password of the page")
	f.StringVar(&o.fleetSecret, "fleet-secret", "", "file with the secret of servers, also towards --store")
	f.StringVar(&o.store, "store", "", "URLs of the fleet's state at other services, separated by commas; empty: in memory")
	f.DurationVar(&o.lifetime, "for", time.Minute, "lifetime of tokens")
	o.logging.addFlags(c)
	return c
}

func (o *backendOptions) check() error {
	if err := checkAddress("listen", o.listen); err != nil {
		return err
	}
	if o.store != "" {
		if err := checkURLs("store", o.store); err != nil {
			return err
		}
	}
	host, _, _ := net.SplitHostPort(o.listen)
	ip, err := netip.ParseAddr(host)
	local := host == "localhost" || err == nil && ip.IsLoopback()
	switch {
	case o.lifetime < time.Second || o.lifetime > token.MaxLifetime:
		return fmt.Errorf("--for %v: want %v to %v", o.lifetime, time.Second, token.MaxLifetime)
	case !local && (o.gameSecret == "" || o.fleetSecret == ""):
		return fmt.Errorf("--listen %s: on this address others can reach it: set --game-secret and --fleet-secret", o.listen)
	}
	return nil
}

// readSecret returns the secret in a file, or an empty one if the path is empty.
func readSecret(flag, path string, log *slog.Logger) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := readSecretFile(path, 4096, log)
	if err != nil {
		return "", fmt.Errorf("--%s: %w", flag, err)
	}
	secret := strings.TrimSpace(string(text))
	if len(secret) < 16 {
		return "", fmt.Errorf("--%s %s: want 16 characters or more", flag, path)
	}
	return secret, nil
}

func (o *backendOptions) loadKeys(log *slog.Logger) (keys []token.IssuerKey, err error) {
	if len(o.keys) == 0 {
		return []token.IssuerKey{token.Development().Issuer()}, nil
	}
	for _, path := range o.keys {
		key, err := loadIssuerKey(path, log)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func (o *backendOptions) run(cmd *cobra.Command) error {
	log := o.logging.logger(cmd.ErrOrStderr())
	keys, err := o.loadKeys(log)
	if err != nil {
		return err
	}
	cfg := backend.Config{Store: fleet.NewMemory(), Lifetime: o.lifetime, Log: log}
	if cfg.GameSecret, err = readSecret("game-secret", o.gameSecret, log); err != nil {
		return err
	}
	if cfg.FleetSecret, err = readSecret("fleet-secret", o.fleetSecret, log); err != nil {
		return err
	}
	if o.store != "" {
		cfg.Store = httpstore.New(o.store, cfg.FleetSecret, nil)
	}
	l, err := net.Listen("tcp", o.listen)
	if err != nil {
		return hintedError{err, "choose another address with --listen; port 0: any free one"}
	}
	b, err := backend.New(cfg, keys)
	if err != nil {
		return err
	}
	defer o.reloadKeys(b, log)()
	log.Info("backend", "url", "http://"+l.Addr().String()+"/", "keys", keyIDs(keys))
	var watching sync.WaitGroup
	defer watching.Wait()
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	watching.Go(func() { b.Run(ctx) })
	return serveHTTP(ctx, l, b, log)
}

// serveHTTP serves until ctx is done, and then waits up to a second for open requests.
func serveHTTP(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := web.NewServer(h)
	server.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	server.BaseContext = func(net.Listener) context.Context { return base }
	var closing sync.WaitGroup
	defer closing.Wait()
	stop := context.AfterFunc(ctx, func() {
		defer closing.Done()
		cancel() // ends the watches of servers
		end, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer done()
		_ = server.Shutdown(end)
		_ = server.Close()
	})
	closing.Add(1)
	err := server.Serve(l)
	if stop() {
		closing.Done()
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// reloadKeys reads the files of --key again at each SIGHUP, until the returned function is called.
func (o *backendOptions) reloadKeys(b *backend.Backend, log *slog.Logger) (stop func()) {
	hangUps := make(chan os.Signal, 1)
	signal.Notify(hangUps, syscall.SIGHUP)
	var work sync.WaitGroup
	work.Go(func() {
		for range hangUps {
			keys, err := o.loadKeys(log)
			if err != nil {
				log.Error("keys not reloaded", "error", err)
				continue
			}
			b.SetKeys(keys)
			log.Info("keys reloaded", "keys", keyIDs(keys))
		}
	})
	return func() {
		signal.Stop(hangUps)
		close(hangUps)
		work.Wait()
	}
}
