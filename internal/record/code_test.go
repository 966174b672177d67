package record

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestDocumented checks that docs/capture.md describes each tag, and no other.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/capture.md")
	if err != nil {
		t.Fatal(err)
	}
	for n := range 256 {
		known := newBody(byte(n)) != nil
		if described := strings.Contains(string(text), fmt.Sprintf("\n| %d | ", n)); known != described {
			t.Errorf("tag %d: parsed %v, described %v", n, known, described)
		}
	}
	if want := fmt.Sprintf("1 to %d,%03d,%03d,", MaxSize/1_000_000, MaxSize/1000%1000, MaxSize%1000); !strings.Contains(string(text), want) {
		t.Errorf("no %q", want)
	}
}
