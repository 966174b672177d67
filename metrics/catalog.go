package metrics

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// metric is one series. Its name ends in _total if it is a counter. Several series of one metric
// have the same name, and the first of them has the help text.
type metric struct {
	name, help   string
	label, value string // an additional label, or none
	number       float64
	histogram    *histogram // value instead of number, or nil
}

func row[N int | uint64 | float64](name, help string, n N) metric {
	return metric{name: name, help: help, number: float64(n)}
}

func labeled[N int | uint64 | float64](name, label, value, help string, n N) metric {
	return metric{name: name, help: help, label: label, value: value, number: float64(n)}
}

// histogram holds the number of observations up to each upper bound, and their total number and
// sum.
type histogram struct {
	buckets map[float64]uint64
	count   uint64
	sum     float64
}

// catalog holds the descriptions of an endpoint's metrics, by name without the prefix.
type catalog struct {
	prefix string
	descs  map[string]*prometheus.Desc
}

// define adds the descriptions of the metrics in series. labels are the names of additional labels.
func (c *catalog) define(series []metric, labels ...string) {
	for _, m := range series {
		if c.descs[m.name] != nil {
			continue
		}
		names := slices.Clip(labels)
		if m.label != "" {
			names = append(names, m.label)
		}
		c.descs[m.name] = prometheus.NewDesc(c.prefix+m.name, m.help, names, nil)
	}
}

// Describe implements [prometheus.Collector].
func (c *catalog) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d
	}
}

// collect sends series to ch. labels are the values of the additional labels, in the order of
// define.
func (c *catalog) collect(ch chan<- prometheus.Metric, series []metric, labels ...string) {
	for _, m := range series {
		desc := c.descs[m.name]
		if h := m.histogram; h != nil {
			ch <- prometheus.MustNewConstHistogram(desc, h.count, h.sum, h.buckets, labels...)
			continue
		}
		typ, values := prometheus.GaugeValue, slices.Clip(labels)
		if strings.HasSuffix(m.name, "_total") {
			typ = prometheus.CounterValue
		}
		if m.label != "" {
			values = append(values, m.value)
		}
		ch <- prometheus.MustNewConstMetric(desc, typ, m.number, values...)
	}
}
