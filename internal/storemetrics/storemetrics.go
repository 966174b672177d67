// Package storemetrics counts the calls of the store of a fleet, for the services that have one:
// uplink backend and uplink-nats.
package storemetrics

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/token"
)

// Store counts the calls of another store. It is a [prometheus.Collector].
type Store struct {
	fleet.Store
	up      prometheus.GaugeFunc
	calls   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

var _ fleet.Store = (*Store)(nil)

// New returns the store s with metrics. Check returns why it fails; nil if it works.
func New(s fleet.Store, check func() error) *Store {
	m := &Store{
		Store: s,
		up: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "uplink_store_up", Help: "Whether the fleet's store works: 1 or 0.",
		}, func() float64 {
			if check() != nil {
				return 0
			}
			return 1
		}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "uplink_store_calls_total",
			Help: "Calls of the fleet's store, by call and result: ok, used or newer (as the store's answers), refused (an entry of the directory) or failed.",
		}, []string{"call", "result"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "uplink_store_call_seconds", Help: "Durations of the calls of the fleet's store.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"call"}),
	}
	for _, call := range []string{"use", "begin", "end", "announce", "withdraw", "servers"} {
		for _, result := range []string{"ok", "failed"} {
			m.calls.WithLabelValues(call, result)
		}
	}
	return m
}

// Describe implements [prometheus.Collector].
func (m *Store) Describe(ch chan<- *prometheus.Desc) {
	m.up.Describe(ch)
	m.calls.Describe(ch)
	m.seconds.Describe(ch)
}

// Collect implements [prometheus.Collector].
func (m *Store) Collect(ch chan<- prometheus.Metric) {
	m.up.Collect(ch)
	m.calls.Collect(ch)
	m.seconds.Collect(ch)
}

// count counts a call that began at a time.
func (m *Store) count(call string, begun time.Time, err error) error {
	result := "failed"
	switch {
	case err == nil:
		result = "ok"
	case errors.Is(err, token.ErrUsed):
		result = "used"
	case errors.Is(err, fleet.ErrNewer):
		result = "newer"
	case errors.Is(err, fleet.ErrInvalid):
		result = "refused"
	}
	m.calls.WithLabelValues(call, result).Inc()
	m.seconds.WithLabelValues(call).Observe(time.Since(begun).Seconds())
	return err
}

// Use implements [fleet.Store].
func (m *Store) Use(ctx context.Context, u fleet.Use) error {
	return m.count("use", time.Now(), m.Store.Use(ctx, u))
}

// Begin implements [fleet.Store].
func (m *Store) Begin(ctx context.Context, s fleet.Session) error {
	return m.count("begin", time.Now(), m.Store.Begin(ctx, s))
}

// End implements [fleet.Store].
func (m *Store) End(ctx context.Context, s fleet.Session) error {
	return m.count("end", time.Now(), m.Store.End(ctx, s))
}

// Announce implements [fleet.Store].
func (m *Store) Announce(ctx context.Context, s fleet.Server) error {
	return m.count("announce", time.Now(), m.Store.Announce(ctx, s))
}

// Withdraw implements [fleet.Store].
func (m *Store) Withdraw(ctx context.Context, name string) error {
	return m.count("withdraw", time.Now(), m.Store.Withdraw(ctx, name))
}

// Servers implements [fleet.Store].
func (m *Store) Servers(ctx context.Context) ([]fleet.Server, error) {
	begun := time.Now()
	servers, err := m.Store.Servers(ctx)
	return servers, m.count("servers", begun, err)
}
