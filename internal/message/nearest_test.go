package message

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestNearest checks which of several names is offered in place of a wrong one.
func TestNearest(t *testing.T) {
	long := strings.Repeat("n", maxNearest)
	for _, test := range []struct {
		name  string
		names []string
		want  string
	}{
		{"Loc", []string{"Velocity", "Boost", "Location", "Buttons"}, `, nearest "Location"`},
		{"ServerMoove", []string{"ServerFire", "ServerMove"}, `, nearest "ServerMove"`},
		{"arena", []string{"lobby", "Arena"}, `, nearest "Arena"`},
		{"x", []string{"\x1b[2J"}, `, nearest "\x1b[2J"`},
		{"x", nil, ""},
		{long + "a", []string{long + "b", long + "a"}, `, nearest "` + long + `b"`}, // bytes that do not count
		{strings.Repeat("\xff", 300), []string{strings.Repeat("\xfe", 300)}, `, nearest "` + strings.Repeat(`\xfe`, 255) + `..."`},
	} {
		if got := Nearest(test.name, test.names); got != test.want {
			t.Errorf("%s of %q: %s, want %s", test.name, test.names, got, test.want)
		}
	}
	names := []string{"lobby", "area", "arena 2"}
	if SortByDistance(names, "arena"); !slices.Equal(names, []string{"area", "arena 2", "lobby"}) {
		t.Errorf("sorted: %q", names)
	}
}

// TestDistance compares the distance of random names with that of the textbook's table, whose time
// grows with the product of their lengths.
func TestDistance(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func() string {
		b := make([]byte, r.IntN(maxNearest+2))
		letters := 1 + r.IntN(4)
		for i := range b {
			b[i] = "abAB"[r.IntN(letters)]
		}
		return string(b)
	}
	table := func(a, b string) int {
		a, b = strings.ToLower(a[:min(len(a), maxNearest)]), strings.ToLower(b[:min(len(b), maxNearest)])
		row := make([]int, len(b)+1)
		for k := range row {
			row[k] = k
		}
		for i := range len(a) {
			diagonal := row[0]
			row[0] = i + 1
			for k := range len(b) {
				replaced := diagonal
				if a[i] != b[k] {
					replaced += 2
				}
				diagonal = row[k+1]
				row[k+1] = min(replaced, row[k]+1, row[k+1]+1)
			}
		}
		common := 0
		for common < min(len(a), len(b)) && a[common] == b[common] {
			common++
		}
		return 256*row[len(b)] - common
	}
	for range 10_000 {
		a, b := random(), random()
		if got, want := newPattern(a).distance(b), table(a, b); got != want {
			t.Fatalf("distance of %q and %q: %d, want %d", a, b, got, want)
		}
	}
}
