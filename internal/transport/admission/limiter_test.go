package admission

import (
	"net/netip"
	"testing"
	"time"
)

func TestNetworks(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1", "192.0.2.254", true},
		{"192.0.2.1", "192.0.3.1", false},
		{"192.0.2.1", "::ffff:192.0.2.9", true},
		{"2001:db8:1:2::1", "2001:db8:1:2:ffff::1", true},
		{"2001:db8:1:2::1", "2001:db8:1:3::1", false},
		{"fe80::1%eth0", "fe80::2%eth1", true},
	} {
		if same := network(netip.MustParseAddr(c.a)) == network(netip.MustParseAddr(c.b)); same != c.same {
			t.Errorf("%s and %s: %v", c.a, c.b, same)
		}
	}
}

// TestLimiterDoesNotGrow allows handshakes of many networks: a full table does not allow all of
// them.
func TestLimiterDoesNotGrow(t *testing.T) {
	l := newLimiter(rate(1, 1), rate(1_000_000, 1_000_000))
	allowed := 0
	for i := range 100_000 {
		a := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		if l.allow(0, a) {
			allowed++
		}
	}
	if allowed == 0 || allowed > 100_000/256+1 {
		t.Errorf("%d of 391 networks are allowed", allowed)
	}
}

// TestRestedNetworksAreServed requests far more handshakes than permitted from 100 networks, and
// one from each of 100 others.
func TestRestedNetworksAreServed(t *testing.T) {
	l := newLimiter(rate(20, 40), rate(500, 1000))
	at := func(a, b byte) netip.Addr { return netip.AddrFrom4([4]byte{10, a, b, 1}) }
	now, allowed, others := time.Second, 0, 0
	for i := range 20_000 { // in 4 s
		if now += 200 * time.Microsecond; l.allow(now, at(0, byte(i%100))) {
			allowed++
		}
		if i%200 == 0 && l.allow(now, at(1, byte(i/200))) {
			others++
		}
	}
	if others != 100 { // although one in ten of their slots is shared with the 100
		t.Errorf("%d of 100 others were served", others)
	}
	if most := 1000 + 4*500; allowed+others > most || allowed < most/2 {
		t.Errorf("%d and %d were served, want at most %d in all", allowed, others, most)
	}
}
