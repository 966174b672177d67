package backend

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/internal/status"
)

const (
	// storeTimeout limits the time of a call of the store.
	storeTimeout = 2 * time.Second
	// readInterval is the time between two readings of the directory without a request.
	readInterval = time.Second
	// lostAge is the age of a server's last announcement from which on its disappearance means that
	// it ended without a word: servers announce themselves every few seconds, and withdraw when
	// they end.
	lostAge = fleet.ServerTTL - readInterval - storeTimeout
)

// counts are the metrics of a Backend.
type counts struct {
	tokens  *prometheus.CounterVec
	seconds prometheus.Histogram
	lost    prometheus.Counter
	servers *prometheus.Desc
}

func newCounts() counts {
	c := counts{
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "uplink_backend_tokens_total",
			Help: "Requests for a token by result: issued; no_server that suits, full (all that do), no_key (for those that do) or store (it fails); unauthorized, invalid or failed.",
		}, []string{"result"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "uplink_backend_token_seconds", Help: "Durations of the requests for a token.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5},
		}),
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "uplink_backend_servers_lost_total", Help: "Servers that disappeared from the directory without withdrawing.",
		}),
		servers: prometheus.NewDesc("uplink_backend_servers",
			"Servers of the directory by state: open, full, draining, or no_key (the backend has no issuer key for it).", []string{"state"}, nil),
	}
	for _, result := range []string{issued, noServer, full, noKey, storeFails, "unauthorized", "invalid", "failed"} {
		c.tokens.WithLabelValues(result)
	}
	return c
}

// Describe implements [prometheus.Collector].
func (b *Backend) Describe(ch chan<- *prometheus.Desc) {
	b.counts.tokens.Describe(ch)
	b.counts.seconds.Describe(ch)
	b.counts.lost.Describe(ch)
	ch <- b.counts.servers
}

// Collect implements [prometheus.Collector].
func (b *Backend) Collect(ch chan<- prometheus.Metric) {
	b.counts.tokens.Collect(ch)
	b.counts.seconds.Collect(ch)
	b.counts.lost.Collect(ch)
	states := map[string]int{"open": 0, "full": 0, "draining": 0, noKey: 0}
	b.mu.Lock()
	for i := range b.known {
		states[b.state(&b.known[i])]++
	}
	b.mu.Unlock()
	for state, n := range states {
		ch <- prometheus.MustNewConstMetric(b.counts.servers, prometheus.GaugeValue, float64(n), state)
	}
}

// state returns the state of a server for the metric. The caller holds the lock.
func (b *Backend) state(s *fleet.Server) string {
	_, known := b.key(s.Key)
	switch {
	case !known:
		return noKey
	case s.Draining:
		return "draining"
	case s.Full():
		return full
	}
	return "open"
}

// Run reads the directory again and again until ctx is done, so that logs, metrics and /readyz tell
// of an outage without a request.
func (b *Backend) Run(ctx context.Context) {
	tick := time.NewTicker(readInterval)
	defer tick.Stop()
	for ctx.Err() == nil {
		_, _ = b.list(ctx)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// list returns the servers of the directory; while the store fails, the last known ones that admit
// players without it, with the error.
func (b *Backend) list(ctx context.Context) ([]fleet.Server, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	servers, err := b.store.Servers(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	switch {
	case errors.Is(context.Cause(ctx), context.Canceled):
		return nil, err // the client left, or the program ends
	case err != nil:
		if b.failure == nil {
			b.failed = now
			b.cfg.Log.Warn("fleet store fails", "error", err)
		}
		b.failure = err
		outage := now.Sub(b.failed)
		return slices.DeleteFunc(slices.Clone(b.known), func(s fleet.Server) bool {
			return outage >= time.Duration(s.OutageSeconds)*time.Second
		}), err
	case b.failure != nil:
		b.cfg.Log.Info("fleet store answers again", "after", now.Sub(b.failed))
		b.failure = nil
		clear(b.seen)
	default: // during an outage, nobody announces itself
		b.miss(now, servers)
	}
	b.known = servers
	b.check()
	return servers, nil
}

// miss counts the known servers that are not among these because they ended without a word. The
// caller holds the lock.
func (b *Backend) miss(now time.Time, servers []fleet.Server) {
	for _, s := range b.known {
		age := now.Sub(b.seen[s.Name].at)
		if !slices.ContainsFunc(servers, func(o fleet.Server) bool { return o.Name == s.Name }) {
			delete(b.seen, s.Name)
			if age >= lostAge {
				b.counts.lost.Inc()
				b.cfg.Log.Error("server lost", "server", s.Name, "addr", s.Addrs, "players", s.Players, "silence", age)
			}
		}
	}
	for _, s := range servers {
		if b.seen[s.Name].updated != s.Updated {
			b.seen[s.Name] = sighting{s.Updated, now}
		}
	}
}

// sighting is when a server has announced itself: by the store's clock, and when this was noticed.
type sighting struct{ updated, at time.Time }

// check logs each server whose key is missing, once. The caller holds the lock.
func (b *Backend) check() {
	missing := map[string]string{}
	for _, s := range b.known {
		if _, ok := b.key(s.Key); ok {
			continue
		}
		missing[s.Name] = s.Key
		if b.missing[s.Name] != s.Key {
			b.cfg.Log.Error("no issuer key for a server", "server", s.Name, "key", s.Key, "keys", b.ids())
		}
	}
	b.missing = missing
}

// ids returns the ids of the keys. The caller holds the lock.
func (b *Backend) ids() string {
	var all []string
	for _, k := range b.keys {
		all = append(all, k.ID().String())
	}
	return strings.Join(all, " ")
}

// ready returns why no token can be issued, or which servers get none.
func (b *Backend) ready() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.failure != nil:
		return fmt.Errorf("the store of the fleet fails: %w", b.failure)
	case len(b.missing) > 0:
		for name, key := range b.missing {
			return status.Degraded(fmt.Errorf("%d of %d servers have another key: %s has %s, this backend has %s", len(b.missing), len(b.known), name, key, b.ids()))
		}
	}
	return nil
}
