package session_test

import (
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/examples/cubes/session"
	"github.com/uplink-rpc/uplink/examples/cubes/world"
)

// TestCompare checks that all variants are measured within each budget, and reproducibly.
func TestCompare(t *testing.T) {
	p := world.Default()
	p.Side = 8
	cfg := session.CompareConfig{
		World: p, Link: session.Link{RTT: 100 * time.Millisecond, Jitter: 33 * time.Millisecond, Loss: 0.05, Seed: 1},
		Time: 2 * time.Second, Warmup: time.Second, Seed: 1, Runs: 2, Budgets: []int{64, 128},
	}
	write := func() ([]*session.Result, string) {
		results, err := session.Compare(cfg)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		session.WriteTable(&b, results)
		return results, b.String()
	}
	results, table := write()
	if _, again := write(); again != table {
		t.Errorf("not the same again:\n%s%s", table, again)
	}
	if want := 2*len(session.Variants()) - 1; len(results) != want || strings.Count(table, "\n") != want+2 {
		t.Errorf("%d results, want %d:\n%s", len(results), want, table)
	}
	for _, r := range results {
		if r.Budget > 0 && r.Kbits() > 1.1*float64(r.Budget) || r.Updates == 0 || r.Rejected > 0 {
			t.Errorf("%s in %d: %.1f kbit/s, %d updates, %d refused: %v", r.Variant, r.Budget, r.Kbits(), r.Updates, r.Rejected, r.LastError)
		}
	}
	if svg := session.Figure(results, cfg.Budgets).SVG(); !strings.Contains(svg, "state, no delta") {
		t.Error(svg)
	}
}
