package endpoint

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/transport/session"
)

// TestTimersAgainstModel compares the wheel with a map that is searched: each connection is taken
// at the first turn at or after its time, once.
func TestTimersAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1, 0)
		wheel := newTimers(now)
		conns := make([]*Conn, 20)
		for i := range conns {
			conns[i] = &Conn{}
		}
		in := map[*Conn]time.Time{}
		span := rapid.SampledFrom([]time.Duration{10, slotTime / 2, 5 * slotTime, slots * slotTime / 3, 3 * slots * slotTime}).Draw(t, "span")
		draw := func(least time.Duration, label string) time.Duration {
			return time.Duration(rapid.Int64Range(int64(least), int64(span)).Draw(t, label))
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			c := rapid.SampledFrom(conns).Draw(t, "conn")
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				wheel.remove(c)
				delete(in, c)
			case 1:
				now = now.Add(draw(0, "passes"))
				checkTake(t, &wheel, in, now)
			default:
				in[c] = now.Add(draw(-span, "at"))
				wheel.set(c, in[c])
			}
			if wheel.count != len(in) {
				t.Fatalf("%d connections, want %d", wheel.count, len(in))
			}
		}
	})
}

// checkTake removes the timers that are due, and schedules some of them again.
func checkTake(t *rapid.T, wheel *timers, in map[*Conn]time.Time, now time.Time) {
	taken := map[*Conn]bool{}
	wheel.advance(now)
	for c := wheel.next(now); c != nil; c = wheel.next(now) {
		if at, ok := in[c]; !ok || at.After(now) || taken[c] {
			t.Fatalf("took one that is due at %v (it is in: %v), now %v", at, ok, now)
		}
		taken[c] = true
		delete(in, c)
		if rapid.Bool().Draw(t, "again") {
			in[c] = now.Add(time.Duration(rapid.IntRange(0, 1).Draw(t, "later")))
			wheel.set(c, in[c])
		}
	}
	for c, at := range in {
		if !at.After(now) && !taken[c] {
			t.Fatalf("one that is due at %v was not taken at %v, in slot %d", at, now, c.timer.slot)
		}
	}
}

func TestNextTick(t *testing.T) {
	const interval = 10 * time.Millisecond
	last := time.Unix(1, 0)
	for late, want := range map[time.Duration]time.Duration{
		0: interval, 1: interval, interval - 1: interval, interval: 2 * interval, 95 * time.Millisecond: 10 * interval,
	} {
		if got := nextTick(last, last.Add(late), interval).Sub(last); got != want {
			t.Errorf("%v late: next after %v, want %v", late, got, want)
		}
	}
}

// TestPathsAgainstModel compares them with one map, on paths that differ in little: in the port, in
// one bit, in the family, in the zone, in the local address.
func TestPathsAgainstModel(t *testing.T) {
	var all []session.Path
	for _, ip := range []string{"0.0.0.0", "127.0.0.1", "127.0.0.2", "255.255.255.255", "::", "::1", "::ffff:127.0.0.1", "fe80::1%a", "fe80::1%b"} {
		for _, port := range []uint16{0, 1, 0xffff} {
			p := on(netip.AddrPortFrom(netip.MustParseAddr(ip), port))
			if all = append(all, p); p.Addr.Addr().Is4() {
				for _, local := range []string{"203.0.113.7", "203.0.113.8"} {
					p.Local = netip.MustParseAddr(local)
					all = append(all, p)
				}
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		m, model := newPaths(), map[session.Path]*Conn{}
		conns := []*Conn{{id: 1}, {id: 2}}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			a, c := rapid.SampledFrom(all).Draw(t, "address"), rapid.SampledFrom(conns).Draw(t, "conn")
			if rapid.Bool().Draw(t, "remove") {
				if m.remove(a, c); model[a] == c {
					delete(model, a)
				}
			} else {
				m.set(a, c)
				model[a] = c
			}
			for _, a := range all {
				if m.get(a) != model[a] {
					t.Fatalf("%v is at %v", a, fmt.Sprint(slices.Collect(maps.Keys(model))))
				}
			}
			if m.len() != len(model) {
				t.Fatalf("%d paths, want %d", m.len(), len(model))
			}
		}
	})
}
