package metrics

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// metric computes one series from statistics of type S. Its name ends in _total if it is a counter.
// Neighbors in a table may have the same name: they are series of one metric, whose first entry has
// the help text.
type metric[S any] struct {
	name, help   string
	label, value string // an additional label, or none
	read         func(*S) float64
	histogram    func(*S) histogram // instead of read
}

func row[S any](name, help string, read func(*S) float64) metric[S] {
	return metric[S]{name: name, help: help, read: read}
}

func labeled[S any](name, label, value, help string, read func(*S) float64) metric[S] {
	return metric[S]{name: name, help: help, label: label, value: value, read: read}
}

// histogram has the number of observations up to each upper bound, their total number and sum.
type histogram struct {
	buckets map[float64]uint64
	count   uint64
	sum     float64
}

// table is a set of metrics that are computed from the same statistics and have the same labels.
type table[S any] struct {
	metrics []metric[S]
	descs   []*prometheus.Desc // of each metric
}

func newTable[S any](s *shared, metrics []metric[S], labels ...string) *table[S] {
	t := &table[S]{metrics: metrics}
	for i, m := range metrics {
		if i > 0 && m.name == metrics[i-1].name {
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
	for i := range t.metrics {
		m := &t.metrics[i]
		if m.histogram != nil {
			h := m.histogram(s)
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
		ch <- prometheus.MustNewConstMetric(t.descs[i], typ, m.read(s), values...)
	}
}
