package statesync

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
	"github.com/uplink-rpc/uplink/internal/uplinktest/repo"
	"github.com/uplink-rpc/uplink/internal/uplinktest/vectors"
)

// TestSpecTables compares docs/spec/tables/state.json, and the weights in docs/spec/state.md, with
// the code.
func TestSpecTables(t *testing.T) {
	var frequencyRows [][rangecoder.Symbols]uint16
	for l := range levels {
		frequencyRows = append(frequencyRows, frequencies(l))
	}
	page, err := os.ReadFile(filepath.Join(repo.Root(t), "docs/spec/state.md"))
	if err != nil {
		t.Fatal(err)
	}
	var rows [][8]int64
	for i, group := range []*scaleWeights{&movedScale, &velocityScale, &otherScale} {
		for k, w := range group {
			row := [8]int64{w.bias, w.elapsed, w.unsteady, w.speed, w.learned, w.velocity, w.other, w.missed}
			rows = append(rows, row)
			line := "| " + strings.Join(strings.Fields(strings.Trim(fmt.Sprint(row), "[]")), " | ") + " |"
			if k > 0 {
				line = "| " + line
			} else {
				line = []string{"with a velocity ", "a velocity ", "others "}[i] + line
			}
			if !strings.Contains(string(page), line+"\n") {
				t.Errorf("docs/spec/state.md lacks the row %s", line)
			}
		}
	}
	vectors.Check(t, "docs/spec/tables/state.json",
		vectors.Section{Name: "frequencies", Value: frequencyRows},
		vectors.Section{Name: "weights", Value: rows},
	)
}
