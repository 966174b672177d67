package claims

import (
	"strings"
	"testing"
)

// TestCompare finds figures that differ by more than a unit of their last digit, and statements
// that are not on the page.
func TestCompare(t *testing.T) {
	const page = "It carries 0.34 of\nthe bits.\n| loss | 99.9 % | 12 |\n"
	for _, c := range []struct {
		text    string
		figures []float64
		err     string
	}{
		{"carries # of the bits", []float64{0.343}, ""},
		{"carries # of the bits", []float64{0.36}, "states 0.34, measured 0.3600"},
		{"| loss | # % | # |", []float64{99.93, 12.9}, ""},
		{"| loss | # % | # |", []float64{98, 12}, "states 99.9, measured 98.0000"},
		{"carries # bits", nil, "does not state"},
	} {
		err := compare(page, []statement{{c.text, c.figures}})
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q, %v: %v, want %q", c.text, c.figures, err, c.err)
		}
	}
}
