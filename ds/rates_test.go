package ds

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/schema"
)

// TestRates: each rate gets its schema, of which the last maxRates are kept.
func TestRates(t *testing.T) {
	typ, err := schema.Compile[testCall]("Call", 0)
	must(t, err)
	rapid.Check(t, func(t *rapid.T) {
		var r rpcShard
		last := map[float64]*schema.Schema{}
		var order []float64 // the last one last
		for range rapid.IntRange(1, 80).Draw(t, "binds") {
			hz := float64(rapid.IntRange(1, 30).Draw(t, "hz"))
			s, err := r.schemaAt(typ.Schema(), hz)
			if err != nil || s.RateHz() != hz || s.Fingerprint() != typ.Schema().Fingerprint() {
				t.Fatalf("at %v Hz: %v, %v", hz, s, err)
			}
			recent := map[float64]bool{}
			for i := len(order) - 1; i >= 0 && len(recent) < maxRates; i-- {
				recent[order[i]] = true
			}
			if (last[hz] == s) != recent[hz] {
				t.Fatalf("at %v Hz: made anew: %v, though of the last %v", hz, last[hz] != s, recent)
			}
			if len(r.schemas) > maxRates {
				t.Fatalf("%d are kept", len(r.schemas))
			}
			last[hz], order = s, append(order, hz)
		}
	})
	var r rpcShard
	if s, err := r.schemaAt(typ.Schema(), typ.Schema().RateHz()); err != nil || s != typ.Schema() || r.schemas != nil {
		t.Errorf("its own rate is compiled: %v", err)
	}
	if _, err := r.schemaAt(typ.Schema(), -1); err == nil || r.schemas != nil {
		t.Errorf("a rate that cannot be: %v, %v", err, r.schemas)
	}
}
