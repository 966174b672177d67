package client

import (
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/jitter"
)

// TestPace checks that a report is used for two seconds, and that counts add up when they wrap
// around and over reconnections.
func TestPace(t *testing.T) {
	const ms = time.Millisecond
	var p pace
	now := time.Now()
	if got := p.at(now); got != (Pace{Rate: 1}) {
		t.Errorf("before any report: %+v", got)
	}
	p.report(now, &control.Buffered{Slack: 20 * ms, Target: 50 * ms, Missing: 65000, Late: 3})
	now = now.Add(250 * ms)
	p.report(now, &control.Buffered{Slack: 20 * ms, Target: 50 * ms, Missing: 1, Late: 3})
	want := Pace{Rate: 1.01, Slack: 20 * ms, Target: 50 * ms, Missing: 65537, Late: 3}
	if got := p.at(now); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if d := want.Interval(101 * ms); d != 100*ms {
		t.Errorf("an interval is %v", d)
	}
	if got := p.at(now.Add(3 * time.Second)); got.Rate != 1 {
		t.Errorf("long after: %+v", got)
	}
	p.relink()
	p.report(now, &control.Buffered{Slack: -time.Second, Target: 50 * ms, Missing: 2, Late: 2})
	if got := p.at(now); got.Missing != 65539 || got.Late != 5 || got.Rate != 1+jitter.MaxPace {
		t.Errorf("over another connection: %+v", got)
	}
	if d := (Pace{}).Interval(time.Second); d != time.Second {
		t.Errorf("without a pace an interval is %v", d)
	}
}
