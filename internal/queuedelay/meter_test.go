package queuedelay

import (
	"testing"
	"time"
)

const ms = time.Millisecond

// TestMeter checks that only a delay of all round trips of an interval counts, and that it counts
// until it is older than two spans.
func TestMeter(t *testing.T) {
	var m Meter
	now := time.Unix(0, 0)
	if got := m.End(now); got != 0 || m.Mean() != 0 {
		t.Errorf("without round trips: %v, mean %v", got, m.Mean())
	}
	interval := func(rtts ...time.Duration) time.Duration {
		for _, rtt := range rtts {
			m.Add(rtt)
		}
		if m.Samples() != len(rtts) {
			t.Errorf("%d samples of %d", m.Samples(), len(rtts))
		}
		now = now.Add(time.Second)
		return m.End(now)
	}
	if got := interval(50*ms, 50*ms, 50*ms); got != 0 {
		t.Errorf("first interval: %v", got)
	}
	if got := interval(50*ms, 150*ms, 50*ms); got > 0 {
		t.Errorf("a single late packet: %v", got)
	}
	queued := 0
	for range 40 {
		if interval(150*ms, 150*ms, 150*ms) > Threshold {
			queued++
		}
	}
	if queued < 10 || queued > 20 {
		t.Errorf("a longer path is a queue for %d s", queued)
	}
}
