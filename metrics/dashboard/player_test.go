package dashboard

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
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

// tracking returns a tracker of players each of whom has one second.
func tracking(seconds map[uint64]second, names map[uint64]string) *tracker {
	tr := &tracker{players: map[*ds.Player]*tracked{}}
	for id, s := range seconds {
		k := &tracked{id: id, name: names[id]}
		k.add(s)
		tr.players[new(ds.Player)] = k
	}
	return tr
}

// ids returns the ids of the rows of a listing, as a page gets them.
func (t *tracker) ids(l listing) (ids []string) {
	for _, r := range t.list(l).Rows {
		ids = append(ids, r.ID)
	}
	return ids
}

func TestWorstFirst(t *testing.T) {
	got := tracking(map[uint64]second{
		1: {calls: 60, received: 60, rtt: 500},
		2: {calls: 60, received: 60, rtt: 900},
		3: {calls: 60, received: 55, lost: 5, bursts: 2},
		4: {calls: 59, missed: 1, received: 60},
		5: {calls: 60, received: 90, drops: 30},
		6: {calls: 30, missed: 30, received: 60},
		7: {},
	}, nil)
	for sort, want := range map[string][]string{
		"worst": {"6", "5", "4", "3", "2", "1", "7"}, // all equal, then by id
		"loss":  {"3", "1", "2", "4", "5", "6", "7"}, // unknown last
		"rtt":   {"2", "1", "3", "4", "5", "6", "7"},
		"calls": {"1", "2", "3", "5", "4", "6", "7"},
	} {
		if ids := got.ids(listing{rows: 9, sort: columns[sort]}); !slices.Equal(ids, want) {
			t.Errorf("by %s: %v, want %v", sort, ids, want)
		}
	}
	if ids := got.ids(listing{rows: 3, ascending: true}); !slices.Equal(ids, []string{"1", "2", "3"}) {
		t.Errorf("by name: %v", ids)
	}
	row := string(marshal(got.list(listing{rows: 1, sort: columns["loss"]}).Rows))
	const want = `[{"id":"3","client":"0","name":"","calls":60,"missed":0,"loss":0.083333,"burst":2.5,"drops":0,"up":0,"rtt":null,` +
		`"down":0,"objects":null,"waiting":null,"baseline":null,"ack":null,"keyframe":null,"sharing":null}]`
	if row != want {
		t.Errorf("%s,\nwant %s", row, want)
	}
}

// TestManyPlayers checks that a page gets no more rows than it shows, of all players.
func TestManyPlayers(t *testing.T) {
	const players = 1000
	all, names := map[uint64]second{}, map[uint64]string{}
	for id := range uint64(players) {
		all[id+1] = second{calls: 60, received: 60, rtt: uint16(id + 1)}
		names[id+1] = fmt.Sprintf("Ann %d", id+1)
	}
	tr := tracking(all, names)
	got := tr.list(listing{rows: 15, sort: columns["worst"]})
	if len(got.Rows) != 15 || got.Rows[0].ID != "1000" || got.Found != players || got.Tracked != players {
		t.Errorf("%d of %d rows, the first is %+v", len(got.Rows), got.Found, got.Rows[0])
	}
	if size := len(marshal(got)); size > 15*300 {
		t.Errorf("%d bytes for 15 rows", size)
	}
	if got := tr.list(listing{rows: 15, sort: columns["rtt"], ascending: true, find: "aNN 99"}); got.Found != 11 || got.Rows[0].Name != "Ann 99" {
		t.Errorf("%d found, the first is %+v", got.Found, got.Rows[0])
	}
}

// TestRowOfWorlds checks the sums, maxima and minima of the worlds of a player, and the figures of
// one of them.
func TestRowOfWorlds(t *testing.T) {
	var k tracked
	stats := func(name string, n uint64) replication.Stats {
		s := replication.Stats{Name: name, TickHz: 20, Ready: 1, Messages: 20 * n, Bytes: 1000 * n, Keyframes: 2 * n, Sharing: 60 * n, Objects: 50, AckAge: 4, BaselineAge: 3}
		if name == "state" {
			s.TickHz, s.Sharing, s.Keyframes, s.Waiting, s.BaselineAge = 60, 20*n, 0, 7, 6
		}
		return s
	}
	for n := range uint64(15) {
		k.step([]replication.Stats{stats("seen", n), stats("state", n)})
		k.add(second{sent: 5000})
	}
	for world, want := range map[string]row{
		"":      {Down: 40_000, Objects: 100, Waiting: 7, Baseline: 150, Ack: 200, Keyframe: 0.05, Sharing: 1},
		"seen":  {Down: 8000, Objects: 50, Waiting: 0, Baseline: 150, Ack: 200, Keyframe: 0.1, Sharing: 3},
		"state": {Down: 8000, Objects: 50, Waiting: 7, Baseline: 100, Ack: 200.0 / 3, Keyframe: 0, Sharing: 1},
	} {
		got := k.row(world)
		got = &row{Down: got.Down, Objects: got.Objects, Waiting: got.Waiting, Baseline: got.Baseline, Ack: got.Ack, Keyframe: got.Keyframe, Sharing: got.Sharing}
		if string(marshal(got)) != string(marshal(&want)) {
			t.Errorf("world %q: %s,\nwant %s", world, marshal(got), marshal(&want))
		}
	}
	if got := k.row("other"); !math.IsNaN(float64(got.Down)) || !math.IsNaN(float64(got.Objects)) {
		t.Errorf("a world that the player does not have: %s", marshal(got))
	}
	if w := k.timeline().Worlds; len(w) != 2 || w[0].Messages != 20 || w[1].AckMs != 200.0/3 || w[1].Ack != 4 {
		t.Errorf("%s", marshal(w))
	}
	k.step(nil)
	if len(k.worlds) != 0 {
		t.Errorf("%d worlds after the last was withdrawn", len(k.worlds))
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
		s := sanitized(name, maxName)
		if n := utf8.RuneCountInString(s); n > maxName+1 || !utf8.ValidString(s) {
			t.Errorf("%q is shown as %q", name, s)
		}
		for _, r := range s {
			if !unicode.IsPrint(r) {
				t.Errorf("%q is shown with %U", name, r)
			}
		}
		var row struct{ Name string }
		check.Must(t, json.Unmarshal(marshal(tracking(map[uint64]second{1: {}}, map[uint64]string{1: s}).list(listing{rows: 1}).Rows[0]), &row))
		if row.Name != s {
			t.Errorf("%q comes as %q", s, row.Name)
		}
		b := event("state", marshal(name))
		if strings.Count(string(b), "\n") != 3 || strings.Contains(string(b), "<") {
			t.Errorf("event %q", b)
		}
	}
	if got := sanitized(strings.Repeat("é", 100), maxName); got != strings.Repeat("é", maxName)+"…" {
		t.Errorf("a long name is shown as %q", got)
	}
}
