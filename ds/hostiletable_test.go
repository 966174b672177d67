package ds_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// attack is what somebody does to a server with fifty players.
type attack struct {
	name string
	run  func(*siege)
	by   string // the counters that have to have refused it
	cfg  ds.Config
	// echoes says that more is refused than was tried: what the server answers goes to
	// those who did not ask, frames in bundles count for themselves, and of a response
	// to a challenge and its copy both can be refused.
	echoes bool
}

var attacks = []attack{
	{name: "hellos from spoofed addresses", run: spoofHellos},
	{name: "the same with made-up cookies", run: spoofCookies, by: "cookie"},
	{name: "unreadable hellos with good cookies, from 100 networks", run: rubbishHellos, by: "rate_limited, unauthenticated"},
	{name: "handshakes with good tokens that never end, from 100 networks", run: slowHandshakes, by: "rate_limited"},
	{name: "used tokens, tokens of another server, copied hellos", run: replayTokens, by: "token, token of the other server"},
	{name: "forged datagrams, addresses and numbers known", run: forge, by: "client duplicate, client unauthenticated, duplicate, unauthenticated"},
	{name: "forged retries, welcomes, refuses, hints", run: forgeAnswers, by: "client unexpected"},
	{name: "all of a second sent again, ten times, in any order", run: sendAgain, by: "client duplicate, duplicate"},
	{name: "each datagram twice", run: alter(double), by: "client duplicate, duplicate"},
	{name: "each cut off, sent ahead", run: alter(truncate), by: "client malformed, client unauthenticated, malformed, unauthenticated"},
	{name: "each with a bit flipped, sent ahead", run: alter(flip), by: "client unauthenticated, unauthenticated", echoes: true},
	{name: "each reflected to its sender", run: alter(reflect), by: "client unauthenticated, duplicate"},
	{name: "each to another player's session", run: alter(cross), by: "client unauthenticated, unauthenticated", echoes: true},
	{name: "each copied and raced, from elsewhere", run: racedCopies, by: "duplicate, unexpected", echoes: true},
	{name: "an older session of the same client", run: oldKeys, by: "unauthenticated, unknown_session", echoes: true},
	{name: "lies in sequences, baselines, hashes, counts", run: lieFrames, by: "frame baseline_missing, frame desync, frame late, frame malformed"},
	{name: "lies in bundles", run: lieBundles, by: "message malformed", echoes: true},
	{name: "binds that cannot be", run: lieBinds, by: "bind, message malformed"},
	{name: "acks and other words of a server", run: lieAcks, by: "message malformed"},
	{name: "flood of frames", run: floodFrames, by: "frame rate_limited, message rate_limited"},
	{name: "flood of bundles and rubbish", run: floodDatagrams, by: "message rate_limited, message malformed", echoes: true},
	{name: "flood of binds", run: floodBinds, by: "bind, message rate_limited"},
	{name: "flood of reliable binds", run: floodRequests(bindAny), by: "bind, end of the session, message rate_limited", echoes: true},
	{name: "flood of reliable messages", run: floodMessages(400), by: "end of the session, message rate_limited", echoes: true},
	{name: "the same for a game that polls", run: floodMessages(8000), by: "end of the session, message queue_full", echoes: true, cfg: ds.Config{Poll: true, QueueBytes: 96 << 10}},
}

// besiege plays with an attack, or in peace.
func besiege(t *testing.T, link simnet.Config, cfg ds.Config, run func(*siege)) (out outcome) {
	const seed = 40
	t.Helper()
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) { out = newSiege(t, seed, link, cfg).play(run) })
	return out
}

// TestHostile has fifty players, and others who come and go, be attacked in all ways, on
// links that lose nothing: so that whatever is missing or late is the attack's doing. It
// prints the table of docs/results.md.
func TestHostile(t *testing.T) {
	link := simnet.Config{Delay: 25 * ms}
	table := tableHead
	peace := map[bool]outcome{}
	for _, poll := range []bool{false, true} {
		cfg, name := ds.Config{}, "nobody"
		if poll {
			cfg, name = attacks[len(attacks)-1].cfg, "nobody, for a game that polls"
		}
		peace[poll] = besiege(t, link, cfg, nil)
		table += peace[poll].row(name)
	}
	for i := thin(4) - 1; i < len(attacks); i += thin(4) {
		a := attacks[i]
		t.Run(a.name, func(t *testing.T) {
			out := besiege(t, link, a.cfg, a.run)
			table += out.row(a.name)
			a.check(t, &out)
			a.harmless(t, &out, peace[a.cfg.Poll])
		})
	}
	t.Log(table)
}

// check holds the counts against each other.
func (a *attack) check(t *testing.T, out *outcome) {
	t.Helper()
	counted := out.served + out.refused
	if out.in != 0 || out.tried == 0 || counted < out.tried || counted != out.tried && !a.echoes {
		t.Errorf("%d tried, %d served, %d refused, %d in: %v", out.tried, out.served, out.refused, out.in, out.by)
	}
	for name := range strings.SplitSeq(a.by, ", ") {
		if name != "" && out.by[name] == 0 {
			t.Errorf("not refused as %s: %v", name, out.by)
		}
	}
}

// harmless holds what the honest players had against what they have in peace.
func (a *attack) harmless(t *testing.T, out *outcome, peace outcome) {
	t.Helper()
	if out.sent != peace.sent || out.delivered != out.sent || out.worst > peace.worst+ms {
		t.Errorf("%d of %d frames came after %v at most; in peace %d of %d after %v",
			out.delivered, out.sent, out.worst, peace.delivered, peace.sent, peace.worst)
	}
	if out.joined != out.joins || out.slowest > peace.slowest {
		t.Errorf("%d of %d joined, after %v at most; in peace after %v", out.joined, out.joins, out.slowest, peace.slowest)
	}
}

// TestHostileWithLoss has those be on the way, or know everything but the keys, while the
// links lose, delay and reorder.
func TestHostileWithLoss(t *testing.T) {
	if testing.Short() {
		t.Skip("the same without loss is not skipped")
	}
	link := simnet.Config{Delay: 25 * ms, Jitter: 5 * ms, Loss: 0.05, Burst: 2, Seed: 41}
	peace := besiege(t, link, ds.Config{}, nil)
	for _, a := range attacks[5:14] {
		t.Run(a.name, func(t *testing.T) {
			out := besiege(t, link, ds.Config{}, a.run)
			t.Logf("%d of %d delivered after %v, in peace %d after %v", out.delivered, out.sent, out.delay, peace.delivered, peace.delay)
			if out.in != 0 {
				t.Errorf("%d in", out.in)
			}
			if out.delivered < peace.delivered*99/100 || out.delay > peace.delay*11/10 || out.joined != out.joins {
				t.Errorf("%d of %d joined", out.joined, out.joins)
			}
		})
	}
}

const tableHead = `
| attack | tried | served | refused | let in | delivered | mean, ms | longest, ms | joined | mean, ms | longest, ms |
| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
`

// row is one of the table.
func (o outcome) row(name string) string {
	var by []string
	for _, counter := range slices.Sorted(maps.Keys(o.by)) {
		by = append(by, fmt.Sprintf("%d %s", o.by[counter], counter))
	}
	inMs := func(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()*1000) }
	return fmt.Sprintf("| %s | %d | %d | %s | %d | %.2f %% | %s | %s | %d of %d | %s | %s |\n", name, o.tried, o.served, strings.Join(by, ", "),
		o.in, 100*float64(o.delivered)/float64(o.sent), inMs(o.delay), inMs(o.worst), o.joined, o.joins, inMs(o.joining/time.Duration(max(o.joined, 1))), inMs(o.slowest))
}
