package metrics

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Handling measures the time from reading a frame's datagram to its handler, as
// uplink_ds_to_handler_seconds. This time grows when a server is overloaded. Register the Handling
// with a registry of your own, and call the function that Observer returns in handlers. Handling is
// safe for concurrent use.
type Handling struct {
	delays    *prometheus.HistogramVec
	exemplars bool
}

var _ prometheus.Collector = (*Handling)(nil)

// NewHandling returns the collector. If exemplars is set, each bucket has the id of a session as
// its exemplar. Everyone who may scrape the metrics in the OpenMetrics format can read these ids.
func NewHandling(exemplars bool) *Handling {
	return &Handling{exemplars: exemplars, delays: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "uplink_ds_to_handler_seconds",
		Help:    "Time from reading a frame's datagram, or its batch, to its handler.",
		Buckets: []float64{10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 1},
	}, []string{"rpc"})}
}

// Describe implements [prometheus.Collector].
func (h *Handling) Describe(ch chan<- *prometheus.Desc) { h.delays.Describe(ch) }

// Collect implements [prometheus.Collector].
func (h *Handling) Collect(ch chan<- prometheus.Metric) { h.delays.Collect(ch) }

const (
	// exemplarEvery is the number of frames per exemplar. An exemplar costs more than an
	// observation.
	exemplarEvery = 256
	// exemplarDelay is the minimum delay that always leaves an exemplar.
	exemplarDelay = 5 * time.Millisecond
)

// Observer returns the function to call in the handler of an RPC, with ds.Player.ID and the time
// since ds.Frame.Received. The function is safe for concurrent use. Without exemplars it does not
// allocate.
func (h *Handling) Observer(rpc string) func(session uint64, delay time.Duration) {
	delays := h.delays.WithLabelValues(rpc)
	if !h.exemplars {
		return func(_ uint64, delay time.Duration) { delays.Observe(delay.Seconds()) }
	}
	var n atomic.Uint64
	return func(session uint64, delay time.Duration) {
		if n.Add(1)%exemplarEvery != 1 && delay < exemplarDelay {
			delays.Observe(delay.Seconds())
			return
		}
		who := prometheus.Labels{"session_id": strconv.FormatUint(session, 10)}
		delays.(prometheus.ExemplarObserver).ObserveWithExemplar(delay.Seconds(), who)
	}
}
