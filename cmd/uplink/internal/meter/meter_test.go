package meter

import (
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
)

func TestSummary(t *testing.T) {
	a, b := NewDurations(), NewDurations()
	for i := range 1000 {
		a.Add(time.Duration(i+1) * time.Microsecond)
		b.Add(time.Duration(i+1001) * time.Microsecond)
	}
	b.Add(-time.Second)
	b.Merge(a.Take())
	s := b.Summary()
	for _, c := range []struct {
		name      string
		got, want float64
	}{{"p50", s.P50, 1}, {"p90", s.P90, 1.8}, {"p99", s.P99, 1.98}, {"p99.9", s.P999, 1.998}, {"max", s.Max, 2}} {
		if c.got < c.want*0.998 || c.got > c.want*1.002 {
			t.Errorf("%s is %v ms, want %v", c.name, c.got, c.want)
		}
	}
	if s.Count != 2001 {
		t.Errorf("%d durations, want 2001", s.Count)
	}
	if s := a.Summary(); s.String() != "not measured" {
		t.Error(s)
	}
	a.Add(time.Hour)
	if s := a.Summary(); s.Count != 1 || s.P50 < 60_000 || s.P50 > 60_100 {
		t.Errorf("an hour is %+v", s)
	}
}

func TestAddAllocatesNothing(t *testing.T) {
	d := NewDurations()
	if n := allocs.PerRun(100, func() { d.Add(time.Millisecond) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestMs(t *testing.T) {
	s := Summary{Count: 1, P50: 0.012, P90: 1.234, P99: 12.34, P999: 123.4, Max: 1234}
	if want := "50 % 0.012, 90 % 1.23, 99 % 12.3, 99.9 % 123, max 1234 ms"; s.String() != want {
		t.Errorf("%q, want %q", s, want)
	}
}

// TestCPU: the clock of the CPU runs while something is computed, until it does.
func TestCPU(t *testing.T) {
	before := CPU()
	if before == 0 {
		t.Skip("this system does not tell")
	}
	for sum := 0; CPU() == before; {
		for i := range 1000 {
			sum += i
		}
	}
}

func TestCounts(t *testing.T) {
	type counts struct {
		Sent  struct{ Frames uint64 }
		Drops [2]uint64
		Took  time.Duration
		other uint64
	}
	a, b := counts{Drops: [2]uint64{5, 6}, Took: 7, other: 8}, counts{Drops: [2]uint64{1, 2}, Took: 3, other: 4}
	a.Sent.Frames, b.Sent.Frames = 9, 3
	sum, difference := Sum(a, b), Difference(a, b)
	if sum.Sent.Frames != 12 || sum.Drops != [2]uint64{6, 8} || sum.Took != 7 || sum.other != 8 || Difference(sum, b) != a {
		t.Errorf("%+v", sum)
	}
	if difference.Sent.Frames != 6 || difference.Drops != [2]uint64{4, 4} {
		t.Errorf("%+v", difference)
	}
}
