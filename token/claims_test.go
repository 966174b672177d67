package token

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
)

var (
	epoch   = time.UnixMilli(1_789_000_000_123)
	here    = netip.MustParseAddrPort("203.0.113.7:7777")
	testKey = newKey([32]byte{1, 2, 3}, [32]byte{4, 5, 6})
)

// valid returns claims that Issue accepts.
func valid() Claims {
	return Claims{ClientID: 42, Issued: epoch, Expires: epoch.Add(time.Minute), Servers: []netip.AddrPort{here}}
}

func mustIssue(t testing.TB, k IssuerKey, c Claims) Token {
	t.Helper()
	token := check.Value(Issue(k, c))(t)
	return token
}

func TestLimits(t *testing.T) {
	servers := func(list ...string) func(*Claims) {
		return func(c *Claims) {
			c.Servers = nil
			for _, s := range list {
				c.Servers = append(c.Servers, netip.MustParseAddrPort(s))
			}
		}
	}
	for _, test := range []struct {
		name   string
		change func(*Claims)
		want   string // empty: no error
	}{
		{"no server", servers(), "Servers: 0 addresses, want 1 to 8"},
		{"eight servers", func(c *Claims) { c.Servers = slices.Repeat(c.Servers, 8) }, ""},
		{"nine servers", func(c *Claims) { c.Servers = slices.Repeat(c.Servers, 9) }, "Servers: 9 addresses, want 1 to 8"},
		{"zero server", func(c *Claims) { c.Servers = append(c.Servers, netip.AddrPort{}) }, "Servers[1]: no address"},
		{"zone", servers("[fe80::1%eth0]:7777"), "Servers[0]: [fe80::1%eth0]:7777 has a zone"},
		{"no port", servers("203.0.113.7:0"), "Servers[0]: 203.0.113.7:0 has no port"},
		{"unspecified", servers("203.0.113.7:1", "0.0.0.0:7777"), "Servers[1]: 0.0.0.0:7777 is where a server listens"},
		{"unspecified IPv6", servers("[::]:7777"), "Servers[0]: [::]:7777 is where"},
		{"unspecified, mapped", servers("[::ffff:0.0.0.0]:7777"), "Servers[0]: [::ffff:0.0.0.0]:7777 is where"},
		{"user data", func(c *Claims) { c.UserData = make([]byte, 256) }, ""},
		{"route", func(c *Claims) { c.Route = make([]byte, 16) }, ""},
		{"too long a route", func(c *Claims) { c.Route = make([]byte, 17) }, "Route: 17 bytes, at most 16"},
		{"handover", func(c *Claims) { c.Handover[31], c.UserData = 1, make([]byte, 256) }, ""},
		{"too much user data", func(c *Claims) { c.UserData = make([]byte, 257) }, "UserData: 257 bytes, at most 256"},
		{"no expiry", func(c *Claims) { c.Expires = time.Time{} }, "Expires: zero: want"},
		{"at once", func(c *Claims) { c.Expires = c.Issued }, "Expires: "},
		{"in the past", func(c *Claims) { c.Expires = c.Issued.Add(-time.Hour) }, "is not a millisecond or more after Issued"},
		{"a millisecond", func(c *Claims) { c.Expires = c.Issued.Add(time.Millisecond) }, ""},
		{"just less than a millisecond", func(c *Claims) { c.Expires = c.Issued.Add(time.Millisecond - 1) }, "Expires: "},
		{"a day", func(c *Claims) { c.Expires = c.Issued.Add(MaxLifetime) }, ""},
		{"a day when rounded down", func(c *Claims) { c.Expires = c.Issued.Add(MaxLifetime + time.Millisecond - 1) }, ""},
		{"longer than a day", func(c *Claims) { c.Expires = c.Issued.Add(MaxLifetime + time.Millisecond) }, "Expires: 24h0m0.001s after Issued, at most 24h0m0s"},
		{"the first millisecond", func(c *Claims) { c.Issued, c.Expires = time.UnixMilli(0), time.UnixMilli(1) }, ""},
		{"before the first", func(c *Claims) { c.Issued, c.Expires = time.Unix(0, -1), time.UnixMilli(1) }, "Issued: "},
		{"the last millisecond", func(c *Claims) { c.Issued, c.Expires = time.UnixMilli(maxMilli-1), time.UnixMilli(maxMilli) }, ""},
		{"after the last", func(c *Claims) { c.Issued, c.Expires = time.UnixMilli(maxMilli), time.UnixMilli(maxMilli+1) }, "Expires: "},
		{"milliseconds that overflow", func(c *Claims) { c.Expires = time.Unix(1<<62, 0) }, "Expires: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := valid()
			test.change(&c)
			token, err := Issue(testKey.Issuer(), c)
			if test.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if _, _, err := testKey.Open(token.Sealed()); err != nil {
					t.Fatalf("issued, but does not open: %v", err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), "token: issue: claims: ") || !strings.Contains(err.Error(), test.want) || !token.IsZero() {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// TestParseClaims opens what a careless issuer with the right key could seal.
func TestParseClaims(t *testing.T) {
	good := valid()
	plain := good.append(nil)
	change := func(at int, to ...byte) []byte {
		b := bytes.Clone(plain)
		copy(b[at:], to)
		return b
	}
	splice := func(server ...byte) []byte { return append(change(24, 1)[:25], server...) }
	zeros := func(n int) []byte { return make([]byte, n) }
	for _, test := range []struct {
		name  string
		plain []byte
		want  string
	}{
		{"short", plain[:31], "claims: 31 bytes, want 33 to 466"},
		{"long", append(plain, zeros(434)...), "claims: 467 bytes, want 33 to 466"},
		{"issued beyond time", change(8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), "claims: Issued: 18446744073709551615 ms since 1970, at most 253402300799999"},
		{"expires beyond time", change(16, 0, 0, 0, 0, 0, 0, 0, 0x80), "claims: Expires: 9223372036854775808 ms"},
		{"expires at once", change(16, plain[8:16]...), "claims: Expires: "}, // what Issue checks
		{"no server", change(24, 0), "claims: Servers: 0 addresses"},
		{"too many servers", change(24, 9), "claims: Servers: 9 addresses"},
		{"a server missing", append(change(24, 2)[:32], 4), "claims: Servers[1]: cut off"},
		{"a server cut off", append(change(24, 2)[:32], 4, 1, 1, 1, 1, 0), "claims: Servers[1]: cut off"},
		{"family", change(25, 5), "claims: Servers[0]: family 5, want 4 or 6"},
		{"IPv6 cut off", change(25, 6), "claims: Servers[0]: cut off"},
		{"no size of a hash", append(change(24, 1, 6)[:26], zeros(18)...), "claims: Handover: cut off"},
		{"a hash cut off", append(change(32, 32), zeros(31)...), "claims: Handover: cut off"},
		{"size of a hash", append(change(32, 31), zeros(31)...), "claims: Handover: a hash of 31 bytes, want 0 or 32"},
		{"a hash of zeros", append(change(32, 32), zeros(32)...), "claims: Handover: a hash of zeros"},
		{"mapped", splice(append(append([]byte{6}, zeros(10)...), 0xff, 0xff, 1, 2, 3, 4, 1, 0)...), "claims: Servers[0]: IPv4 in IPv6"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := parseClaims(test.plain)
			if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), test.want) || c.Servers != nil {
				t.Errorf("%+v, %v; want %q", c, err, test.want)
			}
		})
	}
}

// TestIssue checks that times are rounded down, so that no token lives longer than it was asked to,
// that the time of issue is now by default, and that addresses are unmapped, but not the caller's.
func TestIssue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(1500 * time.Microsecond)
		now := time.Now()
		mapped := netip.MustParseAddrPort("[::ffff:203.0.113.7]:7777")
		c := Claims{Expires: now.Add(time.Second + 400*time.Microsecond), Servers: []netip.AddrPort{mapped}}
		token := mustIssue(t, testKey.Issuer(), c)
		got, _, err := testKey.Open(token.Sealed())
		if now = now.Truncate(time.Millisecond); err != nil || !got.Issued.Equal(now) {
			t.Errorf("issued %v, now %v; %v", got.Issued, now, err)
		}
		if !got.Expires.Equal(now.Add(time.Second)) || !token.Expires().Equal(got.Expires) {
			t.Errorf("expires %v and %v, now %v", got.Expires, token.Expires(), now)
		}
		if got.Servers[0] != here || c.Servers[0] != mapped {
			t.Errorf("%v became %v", mapped, got.Servers)
		}
	})
}

// drawClaims draws claims within all limits.
func drawClaims(t *rapid.T) Claims {
	issued := rapid.Int64Range(0, maxMilli-1).Draw(t, "issued")
	lifetime := rapid.Int64Range(1, min(MaxLifetime.Milliseconds(), maxMilli-issued)).Draw(t, "lifetime")
	server := rapid.Custom(func(t *rapid.T) netip.AddrPort {
		size := rapid.SampledFrom([]int{4, 16}).Draw(t, "size")
		a, _ := netip.AddrFromSlice(rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "address"))
		if a.IsUnspecified() || a.Is4In6() {
			a = here.Addr()
		}
		return netip.AddrPortFrom(a, rapid.Uint16Min(1).Draw(t, "port"))
	})
	return Claims{
		ClientID: rapid.Uint64().Draw(t, "client"),
		Issued:   time.UnixMilli(issued), Expires: time.UnixMilli(issued + lifetime),
		Servers:  rapid.SliceOfN(server, 1, MaxServers).Draw(t, "servers"),
		UserData: rapid.SliceOfN(rapid.Byte(), 0, MaxUserData).Draw(t, "data"),
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key, c := testKey, drawClaims(t)
		issued := check.Value(Issue(key.Issuer(), c))(t)
		token, err := Parse(issued.String())
		if err != nil || token != issued {
			t.Fatalf("%v became %v, %v", issued, token, err)
		}
		got, id, err := key.Open(token.Sealed())
		if err != nil || !got.equal(&c) {
			t.Fatalf("%+v became %+v, %v", c, got, err)
		}
		if id != token.ID() || !token.Expires().Equal(c.Expires) || token.ServerKey() != key.Public() {
			t.Fatalf("id %v or %v, expires %v", id, token.ID(), token.Expires())
		}
	})
}
