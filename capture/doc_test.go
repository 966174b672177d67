package capture

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestDocumented: each type of record that is read is described.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/capture.md")
	if err != nil {
		t.Fatal(err)
	}
	for n := range 256 {
		c := &cursor{b: make([]byte, 64)}
		known := c.body(tag(n)) != nil
		if described := strings.Contains(string(text), fmt.Sprintf("\n| %d | ", n)); known != described {
			t.Errorf("tag %d: read %v, described %v", n, known, described)
		}
	}
	if want := fmt.Sprintf("1 to %d,%03d,%03d,", MaxRecord/1_000_000, MaxRecord/1000%1000, MaxRecord%1000); !strings.Contains(string(text), want) {
		t.Errorf("no %q", want)
	}
}
