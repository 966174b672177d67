// Package webserver serves the commands' /metrics.
package webserver

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Server answers HTTP on one address until Close.
type Server struct {
	listener net.Listener
	http     http.Server
	mux      *http.ServeMux
	done     chan error
}

// Start serves /metrics of the collectors, and of the process, on addr.
func Start(addr string, all ...prometheus.Collector) (*Server, error) {
	registry := prometheus.NewRegistry()
	all = append(all, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, c := range all {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w; choose another address with --metrics", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	s := &Server{listener: l, mux: mux, http: http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}, done: make(chan error, 1)}
	go func() { s.done <- s.http.Serve(l) }()
	return s, nil
}

// Handle has h answer requests that match the pattern of a [http.ServeMux].
func (s *Server) Handle(pattern string, h http.Handler) { s.mux.Handle(pattern, h) }

// Page is where the page is.
func (s *Server) Page() string { return "http://" + s.listener.Addr().String() + "/" }

// URL is where the metrics are.
func (s *Server) URL() string { return s.Page() + "metrics" }

// Close ends serving.
func (s *Server) Close() error {
	err := s.http.Close()
	if served := <-s.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
