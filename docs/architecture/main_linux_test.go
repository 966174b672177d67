package main

import (
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// TestPage checks the page against the code.
func TestPage(t *testing.T) {
	var out strings.Builder
	if err := run(&out, root); err != nil {
		t.Error(err)
	}
	t.Log("\n" + out.String())
}

// TestFaults checks that wrong paths are found.
func TestFaults(t *testing.T) {
	doc, err := readDocument(root)
	if err != nil {
		t.Fatal(err)
	}
	code, err := loadCode(root, doc.packages())
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*callPath){
		"has no function":       func(p *callPath) { p.steps[0].name = "Stream.Sent" },
		"calls the other":       func(p *callPath) { p.steps = slices.Delete(p.steps, 1, 2) },
		"does not hand over to": func(p *callPath) { p.steps[slices.IndexFunc(p.steps, isHandover)].name = "Config.Timeout" },
		"returns to":            func(p *callPath) { p.steps = append(p.steps, p.steps[0]) },
	} {
		p := doc.paths[0]
		p.steps = slices.Clone(p.steps)
		change(&p)
		var faults faultList
		code.checkPath(p, &faults)
		if err := faults.err(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("want a fault with %q, got %v", name, err)
		}
	}
}

func isHandover(s step) bool { return s.kind == handover }
