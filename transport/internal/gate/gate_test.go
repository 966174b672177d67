package gate

import (
	"net/netip"
	"testing"
	"time"
)

func TestBucket(t *testing.T) {
	rate := PerSecond(100, 50)
	var b Bucket
	now := time.Second
	take := func() (n int) {
		for b.Take(now, rate) {
			n++
		}
		return n
	}
	if n := take(); n != 50 {
		t.Errorf("%d at first, want 50", n)
	}
	now += 100 * time.Millisecond
	if n := take(); n != 10 {
		t.Errorf("%d after 100 ms, want 10", n)
	}
	now += time.Hour
	if n := take(); n != 50 {
		t.Errorf("%d after an hour, want 50", n)
	}
}

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

// TestLimiterDoesNotGrow takes from many networks; a full table would be no excuse to let all in.
func TestLimiterDoesNotGrow(t *testing.T) {
	l := newLimiter(PerSecond(1, 1), PerSecond(1_000_000, 1_000_000))
	let := 0
	for i := range 100_000 {
		a := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		if l.take(0, a) {
			let++
		}
	}
	if let == 0 || let > 100_000/256+1 {
		t.Errorf("%d of 391 networks were let in", let)
	}
}

// TestRestedNetworksAreServed has 100 networks ask for far more than there is, and others for one handshake.
func TestRestedNetworksAreServed(t *testing.T) {
	l := newLimiter(PerSecond(20, 40), PerSecond(500, 1000))
	at := func(a, b byte) netip.Addr { return netip.AddrFrom4([4]byte{10, a, b, 1}) }
	now, let, others := time.Second, 0, 0
	for i := range 20_000 { // in 4 s
		if now += 200 * time.Microsecond; l.take(now, at(0, byte(i%100))) {
			let++
		}
		if i%200 == 0 && l.take(now, at(1, byte(i/200))) {
			others++
		}
	}
	if others != 100 { // though each has a slot in common with the 100 by a chance of one in ten
		t.Errorf("%d of 100 others were served", others)
	}
	if most := 1000 + 4*500; let+others > most || let < most/2 {
		t.Errorf("%d and %d were served, want at most %d in all", let, others, most)
	}
}
