package main

import (
	"strings"
	"testing"
)

// TestPage checks the page against the code.
func TestPage(t *testing.T) {
	var out strings.Builder
	if err := run(&out, "../.."); err != nil {
		t.Error(err)
	}
	t.Log("\n" + out.String())
}
