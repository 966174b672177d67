package ds

import "testing"

// TestDropString names every reason, and does not panic at others.
func TestDropString(t *testing.T) {
	seen := map[string]bool{}
	for d := range drops + 2 {
		if s := d.String(); s == "" || seen[s] {
			t.Errorf("reason %d is %q", d, s)
		} else {
			seen[s] = true
		}
	}
}
