package metrics

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// metric is one series. Its name ends in _total if it is a counter. Neighbors in a table may have
// the same name: they are series of one metric, whose first entry has the help text.
type metric struct {
	name, help   string
	label, value string // an additional label, or none
	number       float64
	histogram    *histogram // instead of number
}

func row[N int | uint64 | float64](name, help string, n N) metric {
	return metric{name: name, help: help, number: float64(n)}
}

func labeled[N int | uint64 | float64](name, label, value, help string, n N) metric {
	return metric{name: name, help: help, label: label, value: value, number: float64(n)}
}

// histogram has the number of observations up to each upper bound, their total number and sum.
type histogram struct {
	buckets map[float64]uint64
	count   uint64
	sum     float64
}

// table is a set of metrics that are computed from the same statistics and have the same labels.
type table[S any] struct {
	metrics func(*S) []metric
	descs   []*prometheus.Desc // of each metric
}

func newTable[S any](s *shared, metrics func(*S) []metric, labels ...string) *table[S] {
	t := &table[S]{metrics: metrics}
	all := metrics(new(S))
	for i, m := range all {
		if i > 0 && m.name == all[i-1].name {
			t.descs = append(t.descs, t.descs[i-1])
			continue
		}
		names := slices.Clip(labels)
		if m.label != "" {
			names = append(names, m.label)
		}
		d := prometheus.NewDesc(s.prefix+m.name, m.help, names, nil)
		t.descs, s.descs = append(t.descs, d), append(s.descs, d)
	}
	return t
}

func (t *table[S]) collect(ch chan<- prometheus.Metric, s *S, labels ...string) {
	for i, m := range t.metrics(s) {
		if h := m.histogram; h != nil {
			ch <- prometheus.MustNewConstHistogram(t.descs[i], h.count, h.sum, h.buckets, labels...)
			continue
		}
		typ, values := prometheus.GaugeValue, slices.Clip(labels)
		if strings.HasSuffix(m.name, "_total") {
			typ = prometheus.CounterValue
		}
		if m.label != "" {
			values = append(values, m.value)
		}
		ch <- prometheus.MustNewConstMetric(t.descs[i], typ, m.number, values...)
	}
}
