package transport

import (
	"runtime"
	"testing"

	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
)

// sessionBudgets are the maximum heap bytes of a connection at its listener before it uses the
// reliable channel. At least half are the keys of both directions.
var sessionBudgets = map[Suite]float64{AES128GCM: 4 << 10, AES128CTRHMAC8: 5 << 10}

func heap() float64 {
	runtime.GC()
	runtime.GC() // also frees memory of finalizers and pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func TestSessionFitsItsBudget(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector takes memory")
	}
	const count = 500
	for suite, budget := range sessionBudgets {
		d := newTestListener(t, Config{MaxConns: count, HandshakesPerNetwork: count, Handshakes: count, Suites: []Suite{suite}})
		before := heap()
		for i := range count {
			d.arriveWith(t, place(i), Config{Suites: []Suite{suite}}).enter().open()
		}
		each := (heap() - before) / count // the clients are gone
		if n := d.Stats().Open; n != count {
			t.Fatalf("%d connections", n)
		}
		t.Logf("%v: %.0f bytes", suite, each)
		if each > budget || each < 500 {
			t.Errorf("%v: a session holds %.0f bytes, want at most %.0f", suite, each, budget)
		}
	}
}
