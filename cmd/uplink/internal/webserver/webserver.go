// Package webserver serves the HTTP pages of commands: /metrics, the dashboard and others.
package webserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/status"
	"github.com/uplink-rpc/uplink/internal/web"
	"github.com/uplink-rpc/uplink/metrics/dashboard"
)

// Config configures a [Server].
type Config struct {
	// Addr is the TCP address to listen on.
	Addr string
	// Token is required for all paths but /metrics. An empty token means none on a loopback
	// address, and a random one on other addresses.
	Token string
	// Log receives errors of connections; nil discards them.
	Log *slog.Logger
	// Collectors are served at /metrics in addition to the metrics of the process.
	Collectors []prometheus.Collector
	// Labels are added to all metrics.
	Labels map[string]string
	// Ready returns why /readyz should answer with the status 503, nil if it should not. A nil
	// function never does.
	Ready func() error
	// Source is the source of the dashboard at /; nil disables the dashboard.
	Source    *ds.Server
	Dashboard dashboard.Config
	// Handlers are further handlers by the prefix of their paths, such as "/demo/". The prefix is
	// not removed.
	Handlers map[string]http.Handler
}

// Server answers HTTP on one address until Close.
type Server struct {
	listener net.Listener
	token    string
	http     *http.Server
	done     chan error

	cancel  context.CancelFunc
	running sync.WaitGroup // waits for the dashboard
}

// Start starts a server.
func Start(cfg Config) (*Server, error) {
	mux := http.NewServeMux()
	ready := cfg.Ready
	if ready == nil {
		ready = func() error { return nil }
	}
	if err := status.Handle(mux, cfg.Labels, ready, cfg.Collectors...); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w; choose another address with --metrics", err)
	}
	s := &Server{listener: l, done: make(chan error, 1)}
	guard, err := s.guard(cfg.Token)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	for prefix, h := range cfg.Handlers {
		mux.Handle(prefix, guard.Handler(h))
	}
	if cfg.Source != nil {
		cfg.Dashboard.ReadOnly, cfg.Dashboard.Metrics = guard.ReadOnly(), "metrics"
		d := dashboard.New(cfg.Source, cfg.Dashboard)
		mux.Handle("/", guard.Handler(d))
		s.running.Go(func() { d.Run(ctx) })
	}
	s.http = web.NewServer(mux)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s.http.ErrorLog = slog.NewLogLogger(cfg.Log.Handler(), slog.LevelWarn)
	go func() { s.done <- s.http.Serve(l) }()
	return s, nil
}

// guard returns the guard for the token. It makes a random token if one is required but not given.
func (s *Server) guard(token string) (*dashboard.Guard, error) {
	s.token = token
	guard, err := dashboard.NewGuard(s.listener.Addr(), s.token)
	if err != nil && token == "" {
		s.token = rand.Text()
		return dashboard.NewGuard(s.listener.Addr(), s.token)
	}
	if err != nil {
		err = fmt.Errorf("%w; choose another with --http-token, or leave it out for a random one", err)
	}
	return guard, err
}

// MetricsURL returns the URL of the metrics.
func (s *Server) MetricsURL() string { return s.url("/metrics", "") }

// URL returns the URL of the dashboard, with the token if one is required.
func (s *Server) URL() string { return s.url("/", s.token) }

func (s *Server) url(path, token string) string {
	at := s.listener.Addr().(*net.TCPAddr)
	u := url.URL{Scheme: "http", Host: at.String(), Path: path}
	if at.IP.IsUnspecified() { // all addresses of the machine: use one that a browser on it accepts
		u.Host = net.JoinHostPort("localhost", strconv.Itoa(at.Port))
	}
	if token != "" {
		u.RawQuery = url.Values{"token": {token}}.Encode()
	}
	return u.String()
}

// Close stops the server.
func (s *Server) Close() error {
	s.cancel()
	s.running.Wait()
	err := s.http.Close()
	if served := <-s.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
