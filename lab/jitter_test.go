package main

import (
	"strings"
	"testing"
)

// TestJitter checks that there is a row for each link, setup and clock.
func TestJitter(t *testing.T) {
	var out strings.Builder
	if err := playJitter(&out, jitterOptions{minutes: 1, runs: 1}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != 1+len(jitterLinks)*len(jitterSetups)*len(clockDrifts) {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
}
