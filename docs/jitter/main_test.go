package main

import (
	"strings"
	"testing"
)

// TestRun checks that there is a row for each link, setup and clock.
func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(&out, options{hz: 60, minutes: 1, runs: 1}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != 1+len(links)*len(setups)*len(drifts) {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
}
