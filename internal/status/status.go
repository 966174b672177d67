// Package status serves what monitoring asks of a process: /metrics, /healthz and /readyz.
package status

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Handle adds the paths to mux: GET /metrics with the metrics of the process and of the collectors,
// each with the labels; GET /healthz, which answers "ok" while the process runs; and GET /readyz,
// which answers with the status 503 and the error while ready returns one. With an error of
// [Degraded], the status is 200.
func Handle(mux *http.ServeMux, labels map[string]string, ready func() error, all ...prometheus.Collector) error {
	registry := prometheus.NewRegistry()
	labeled := prometheus.WrapRegistererWith(labels, registry)
	process := []prometheus.Collector{collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})}
	for _, c := range append(process, all...) {
		if err := labeled.Register(c); err != nil {
			return err
		}
	}
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		err := ready()
		switch d := new(degraded); {
		case err == nil:
			fmt.Fprintln(w, "ok")
		case errors.As(err, d):
			fmt.Fprintf(w, "ok, but %v\n", err)
		default:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	return nil
}

// degraded is an error of Degraded.
type degraded struct{ error }

// Degraded returns an error that is no reason to remove the process from a load balancer.
func Degraded(err error) error { return degraded{err} }
