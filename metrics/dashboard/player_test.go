package dashboard

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/ds"
)

// TestSeconds compares the ring of a player's seconds with a slice of all of them.
func TestSeconds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var k tracked
		var all []uint16
		for i := range rapid.IntRange(0, 2*span+5).Draw(t, "seconds") {
			k.add(second{calls: uint16(i), rtt: uint16(2 * i)})
			all = append(all, uint16(i))
		}
		if len(all) == 0 {
			return
		}
		last := all[max(0, len(all)-span):]
		line := k.timeline()
		if !slices.Equal(line.Calls, last) || len(line.RTT) != len(last) || line.RTT[len(last)-1] != 2*last[len(last)-1] {
			t.Fatalf("%v, want %v", line.Calls, last)
		}
		var want uint64
		for _, n := range last[max(0, len(last)-recent):] {
			want += uint64(n)
		}
		if sum, rtt, n := k.sum(); sum.calls != want || n != min(recent, len(all)) || rtt != 2*last[len(last)-1] {
			t.Fatalf("%d calls in %d s, RTT %d; want %d", sum.calls, n, rtt, want)
		}
	})
}

// list returns the list of players, each of whom has one second.
func list(t *testing.T, seconds map[uint64]second, names map[uint64]string) [][]any {
	t.Helper()
	tr := tracker{players: map[*ds.Player]*tracked{}}
	for id, s := range seconds {
		k := &tracked{id: id, name: names[id]}
		k.add(s)
		tr.players[new(ds.Player)] = k
	}
	var out [][]any
	check.Must(t, json.Unmarshal(tr.appendJSON(nil), &out))
	return out
}

func TestWorstFirst(t *testing.T) {
	got := list(t, map[uint64]second{
		1: {calls: 60, received: 60, rtt: 500},
		2: {calls: 60, received: 60, rtt: 900},
		3: {calls: 60, received: 55, lost: 5, bursts: 2},
		4: {calls: 59, missed: 1, received: 60},
		5: {calls: 60, received: 90, drops: 30},
		6: {calls: 30, missed: 30, received: 60},
		7: {},
	}, nil)
	var order []any
	for _, row := range got {
		order = append(order, row[0])
	}
	if want := []any{"6", "5", "4", "3", "2", "1", "7"}; !slices.Equal(order, want) {
		t.Errorf("%v, want %v", order, want)
	}
	if row, want := fmt.Sprint(got[3]), "[3 0  1 60 0 0 5 2 55 0 0]"; row != want {
		t.Errorf("%s, want %s", row, want)
	}
}

// TestManyPlayers checks that the list has the worst connections if there are too many players.
func TestManyPlayers(t *testing.T) {
	all := map[uint64]second{}
	for id := range uint64(maxListed + 50) {
		all[id+1] = second{calls: 60, received: 60, rtt: uint16(id)}
	}
	got := list(t, all, nil)
	if len(got) != maxListed || got[0][0] != fmt.Sprint(maxListed+50) {
		t.Errorf("%d players, the first is %v", len(got), got[0])
	}
}

// hostile are names that break a page without escaping.
var hostile = []string{
	`</script><img src=x onerror=alert(1)>`, `"><svg onload=alert(1)>`, "a\u202eb\u2066c", "\u0000\u0007\x1b[31m", "line\nbreak\r\n\r\nevent: x",
	"\xff\xfe", "\u2028\u2029", strings.Repeat("W", 10_000), strings.Repeat("é", 100), `\u003c`, "`${alert(1)}`", "{{7*7}}",
}

// TestNames checks that names become short, printable and single-line, and end neither the JSON nor
// the event around them.
func TestNames(t *testing.T) {
	for _, name := range hostile {
		s := sanitized(name)
		if n := utf8.RuneCountInString(s); n > maxName+1 || !utf8.ValidString(s) {
			t.Errorf("%q is shown as %q", name, s)
		}
		for _, r := range s {
			if !unicode.IsPrint(r) {
				t.Errorf("%q is shown with %U", name, r)
			}
		}
		row := list(t, map[uint64]second{1: {}}, map[uint64]string{1: s})
		if row[0][2] != s {
			t.Errorf("%q comes as %q", s, row[0][2])
		}
		b := event("state", marshal(name))
		if strings.Count(string(b), "\n") != 3 || strings.Contains(string(b), "<") {
			t.Errorf("event %q", b)
		}
	}
	if got := sanitized(strings.Repeat("é", 100)); got != strings.Repeat("é", maxName)+"…" {
		t.Errorf("a long name is shown as %q", got)
	}
}
