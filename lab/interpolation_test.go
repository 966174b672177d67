package main

import (
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/lab/internal/playback"
)

func someErrors() (all interpolated) {
	for _, hz := range interpolatedRates {
		for i, s := range playback.Schemes(hz) {
			all.Results = append(all.Results, playback.Result{Name: s.Name, Hz: hz, Position: playback.Errors{Mean: float64(100 / (i + 1)), P99: 500}, Hitches: 2.5, Starved: 0.125})
		}
		all.Duels = append(all.Duels, &playback.Duel{Hit: playback.Side{Count: 7, Linear: 3, Hermite: 1.5, Worse: 0.25, By: 0.5}})
	}
	return all
}

func TestWriteErrors(t *testing.T) {
	var b strings.Builder
	if err := writeErrors(&b, someErrors()); err != nil {
		t.Fatal(err)
	}
	said := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{"10 nearest 100.00 500.0 0.00 0.0 2.5 12.50 % 0", "60 extrapolated 20.00", "20 hit 7 3.00 1.50 25.0 % 0.50"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in %s", want, said)
		}
	}
}

// TestDrawErrors checks the rows and schemes of the chart.
func TestDrawErrors(t *testing.T) {
	svg := drawErrors(someErrors().Results)
	for what, n := range map[string]int{"<rect": 4 * drawn, ">10 Hz<": 1, ">60 Hz<": 1, ">adaptive<": 1, ">extrapolated<": 0, ">100<": 4, ">100 mm<": 1} {
		if got := strings.Count(svg, what); got != n {
			t.Errorf("%q is there %d times, want %d", what, got, n)
		}
	}
}
