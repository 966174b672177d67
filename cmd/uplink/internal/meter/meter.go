// Package meter measures durations and the CPU time of the process.
package meter

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// longest is the maximum recorded duration.
const longest = time.Minute

// Durations is a histogram of durations. Its resolution is a microsecond or three digits, whichever
// is coarser. It is safe for concurrent use, and Add does not allocate.
type Durations struct {
	mu   sync.Mutex
	hist *hdrhistogram.Histogram
}

// NewDurations returns an empty histogram of about 150 KB.
func NewDurations() *Durations {
	return &Durations{hist: hdrhistogram.New(int64(time.Microsecond), int64(longest), 3)}
}

// Add adds a duration. Negative ones count as 0, and those over a minute as a minute.
func (d *Durations) Add(took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = d.hist.RecordValue(int64(min(max(took, 0), longest))) // in range
}

// Take returns the durations added since the last Take, and removes them.
func (d *Durations) Take() *Durations {
	taken := NewDurations()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hist, taken.hist = taken.hist, d.hist
	return taken
}

// Merge adds the durations of o. Two histograms must not merge each other concurrently.
func (d *Durations) Merge(o *Durations) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	d.hist.Merge(o.hist) // same range, so nothing is dropped
}

// Summary returns the percentiles.
func (d *Durations) Summary() Summary {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := Summary{Count: uint64(d.hist.TotalCount())}
	if s.Count == 0 {
		return s
	}
	at := d.hist.ValueAtPercentilesSlice([]float64{50, 90, 99, 99.9, 100})
	for i, v := range []*float64{&s.P50, &s.P90, &s.P99, &s.P999, &s.Max} {
		*v = float64(at[i]/1000) / 1000
	}
	return s
}

// Summary contains percentiles in milliseconds.
type Summary struct {
	Count uint64  `json:"count"`
	P50   float64 `json:"p50_ms"`
	P90   float64 `json:"p90_ms"`
	P99   float64 `json:"p99_ms"`
	P999  float64 `json:"p99_9_ms"`
	Max   float64 `json:"max_ms"`
}

// String formats the percentiles.
func (s Summary) String() string {
	if s.Count == 0 {
		return "not measured"
	}
	return fmt.Sprintf("50 %% %v, 90 %% %v, 99 %% %v, 99.9 %% %v, max %v ms", Ms(s.P50), Ms(s.P90), Ms(s.P99), Ms(s.P999), Ms(s.Max))
}

// Ms is a number of milliseconds that prints with at most three digits.
type Ms float64

func (m Ms) String() string {
	if m >= 100 {
		return strconv.FormatFloat(float64(m), 'f', 0, 64)
	}
	return strconv.FormatFloat(float64(m), 'g', 3, 64)
}
