package control

import (
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
