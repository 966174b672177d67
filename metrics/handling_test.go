package metrics_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
	"github.com/uplink-rpc/uplink/internal/uplinktest/scrape"
	"github.com/uplink-rpc/uplink/metrics"
)

// sessions returns the exemplars of an RPC's delays, and the number of observations.
func sessions(t *testing.T, h *metrics.Handling) (named []string, observed uint64) {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(h)
	problems, err := testutil.GatherAndLint(r)
	must(t, err)
	if len(problems) != 0 {
		t.Error(problems)
	}
	hist := scrape.Gather(t, r).Each("uplink_ds_to_handler_seconds", "rpc=Move")[0].GetHistogram()
	for _, b := range hist.GetBucket() {
		for _, l := range b.GetExemplar().GetLabel() {
			named = append(named, l.GetName()+"="+l.GetValue())
		}
	}
	return named, hist.GetSampleCount()
}

func TestHandling(t *testing.T) {
	for _, c := range []struct {
		exemplars bool
		want      int
	}{{false, 0}, {true, 2}} {
		h := metrics.NewHandling(c.exemplars)
		observe := h.Observer("Move")
		observe(10, 20*time.Microsecond) // the first one
		for range 100 {
			observe(11, 300*time.Microsecond)
		}
		observe(12, 20*time.Millisecond) // slow
		named, n := sessions(t, h)
		if len(named) != c.want || n != 102 {
			t.Errorf("exemplars %v: %d observed, named %q", c.exemplars, n, named)
		}
		if c.exemplars && (named[0] != "session_id=10" || named[1] != "session_id=12") {
			t.Errorf("named %q", named)
		}
	}
}

func TestHandlingAllocatesNothing(t *testing.T) {
	observe := metrics.NewHandling(false).Observer("Move")
	check.NoAllocs(t, func() { observe(1, time.Second) })
}
