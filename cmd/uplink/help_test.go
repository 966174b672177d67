package main

import (
	"strings"
	"testing"
)

// TestHelpHasExamples: each command's help shows how it is called, with flags that it has.
func TestHelpHasExamples(t *testing.T) {
	for _, c := range newRoot(&profiler{}).Commands() {
		if c.Hidden {
			continue
		}
		if c.Example == "" || c.Short == "" || c.Long == "" {
			t.Errorf("%s: no example, or no description", c.Name())
		}
		shown := 0
		for line := range strings.Lines(c.Example) {
			_, args, ok := strings.Cut(line, "uplink "+c.Name())
			if !strings.HasPrefix(line, "  ") {
				t.Errorf("%s: the example %q", c.Name(), line)
			}
			if !ok { // text before or after the table
				continue
			}
			shown++
			for _, word := range strings.Fields(args) {
				name, isFlag := strings.CutPrefix(word, "--")
				if name, _, _ = strings.Cut(name, "="); isFlag && c.Flags().Lookup(name) == nil {
					t.Errorf("%s: the example %q has no such flag", c.Name(), line)
				}
			}
		}
		if shown == 0 {
			t.Errorf("%s: no example calls it", c.Name())
		}
	}
}
