package metrics

import "github.com/prometheus/client_golang/prometheus"

// NewFileLosses returns the collector of uplink_ds_file_lost_total for one output file of a
// server. file is the value of
// its label, such as "record" or "capture". lost returns how many rows or records may be missing from the file so far;
// it must be safe for concurrent use. Register a collector for each file.
func NewFileLosses(file string, lost func() uint64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name:        "uplink_ds_file_lost_total",
		Help:        "Rows or records that were not written to an output file: it could not be written, as on a full disk, or the disk was too slow.",
		ConstLabels: prometheus.Labels{"file": file},
	}, func() float64 { return float64(lost()) })
}
