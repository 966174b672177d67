// Package scrape reads metrics in tests.
package scrape

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Families are the metrics of a scrape by name. A series is selected by labels as "name=value".
type Families map[string]*dto.MetricFamily

// Collect gathers the metrics of collectors.
func Collect(t *testing.T, collectors ...prometheus.Collector) Families {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(collectors...)
	return Gather(t, r)
}

// Gather gathers the metrics of a registry.
func Gather(t *testing.T, r *prometheus.Registry) Families {
	t.Helper()
	all, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := Families{}
	for _, f := range all {
		out[f.GetName()] = f
	}
	return out
}

// Each returns the series with all these labels.
func (f Families) Each(name string, labels ...string) (series []*dto.Metric) {
	for _, m := range f[name].GetMetric() {
		has := 0
		for _, l := range m.GetLabel() {
			if slices.Contains(labels, l.GetName()+"="+l.GetValue()) {
				has++
			}
		}
		if has == len(labels) {
			series = append(series, m)
		}
	}
	return series
}

// Has reports whether there is a series with all these labels.
func (f Families) Has(name string, labels ...string) bool { return len(f.Each(name, labels...)) != 0 }

// Sum returns the sum of the series; for histograms the number of observations.
func (f Families) Sum(name string, labels ...string) float64 {
	total := 0.0
	for _, m := range f.Each(name, labels...) {
		total += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return total
}

// Between checks the sum of a series, given as its name and labels.
func (f Families) Between(t *testing.T, series string, least, most float64) {
	t.Helper()
	words := strings.Fields(series)
	if n := f.Sum(words[0], words[1:]...); n < least || n > most || !f.Has(words[0], words[1:]...) {
		t.Errorf("%s is %v, want %v to %v", series, n, least, most)
	}
}

// Prefixes of the names of the metrics of servers and clients.
const (
	Server = "uplink_ds_"
	Client = "uplink_client_"
)

// WireRatio evaluates the rule of deploy/prometheus/recording.yml for one RPC, or for all with an
// empty name, from two scrapes of an endpoint, Server or Client.
func WireRatio(before, after Families, endpoint, rpc string) float64 {
	labels := []string{"channel=unreliable"}
	of := func(name string, labels ...string) float64 {
		return after.Sum(endpoint+name, labels...) - before.Sum(endpoint+name, labels...)
	}
	datagrams := func(labels ...string) float64 {
		return of("payloads_total", labels...) - of("coalesced_payloads_total", labels...)
	}
	all := datagrams(labels...)
	if rpc != "" {
		labels = append(labels, "rpc="+rpc)
	}
	sent := 1 + of("lost_datagrams_total")/of("datagrams_total", "direction=received")
	up, down := of("wire_bytes_total", labels...), of("ack_wire_bytes_total")*datagrams(labels...)/all
	if endpoint == Server {
		up *= sent
	} else {
		down *= sent
	}
	return (up + down) / of("full_wire_bytes_total", labels...)
}
