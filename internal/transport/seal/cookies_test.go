package seal

import (
	"crypto/rand"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var (
	cookieStart = time.Unix(1e9, 0)
	cookieAddr  = netip.MustParseAddrPort("203.0.113.7:7777")
)

// TestCookieLife makes cookies at any time and shows each of them after up to 12 s, over turns of
// the secret.
func TestCookieLife(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, now := NewCookies(nil, cookieStart), cookieStart
		for range rapid.IntRange(1, 20).Draw(t, "cookies") {
			now = now.Add(time.Duration(rapid.Int64Range(0, 130_000).Draw(t, "idle")) * time.Millisecond)
			nonce := rapid.Uint64().Draw(t, "nonce")
			cookie := c.Make(cookieAddr, nonce, now)
			age := time.Duration(rapid.Int64Range(0, 12_000).Draw(t, "age")) * time.Millisecond
			now = now.Add(age)
			if got := c.Check(cookie, cookieAddr, nonce, now); got != (age <= CookieLife) {
				t.Fatalf("a cookie %v old: %v", age, got)
			}
		}
	})
}

func TestCookieIsForOneSender(t *testing.T) {
	c := NewCookies(nil, cookieStart)
	now := cookieStart.Add(50 * time.Second)
	cookie := c.Make(cookieAddr, 7, now)
	check := func(what string, want bool, cookie [CookieSize]byte, addr string, nonce uint64, now time.Time) {
		t.Helper()
		if c.Check(cookie, netip.MustParseAddrPort(addr), nonce, now) != want {
			t.Errorf("%s: %v", what, !want)
		}
	}
	check("the sender", true, cookie, "203.0.113.7:7777", 7, now)
	check("its address in the other form", true, cookie, "[::ffff:203.0.113.7]:7777", 7, now)
	check("another port", false, cookie, "203.0.113.7:7778", 7, now)
	check("another address", false, cookie, "203.0.113.6:7777", 7, now)
	check("IPv6", false, cookie, "[2001:db8::1]:7777", 7, now)
	check("another nonce", false, cookie, "203.0.113.7:7777", 8, now)
	check("no cookie", false, [CookieSize]byte{}, "203.0.113.7:7777", 7, now)
	check("at the end of its life", true, cookie, "203.0.113.7:7777", 7, now.Add(CookieLife))
	check("after its life", false, cookie, "203.0.113.7:7777", 7, now.Add(CookieLife+time.Millisecond))
	check("before it was made", false, cookie, "203.0.113.7:7777", 7, now.Add(-time.Millisecond))
	for bit := range 8 * CookieSize {
		check("a flipped bit", false, [CookieSize]byte(flipped(cookie[:], bit)), "203.0.113.7:7777", 7, now)
	}
	if other := NewCookies(nil, cookieStart); other.Check(cookie, cookieAddr, 7, now) {
		t.Error("another listener's cookie is taken")
	}
}

// TestCookieSecretsTurn: each minute in which there is something to do has its own secret.
func TestCookieSecretsTurn(t *testing.T) {
	reads := 0
	c := NewCookies(readerFunc(func(b []byte) (int, error) {
		reads++
		return rand.Read(b)
	}), cookieStart)
	first := reads
	for ms := range 10 * int(cookieTurn.Milliseconds()) / 500 {
		c.Make(cookieAddr, 7, cookieStart.Add(time.Duration(ms)*500*time.Millisecond))
	}
	if reads-first != 9 {
		t.Errorf("%d new secrets in ten minutes, want 9", reads-first)
	}
	// One of long ago is refused although the time in it, which wraps after 49 days, is right
	// again.
	old := c.Make(cookieAddr, 7, cookieStart.Add(10*cookieTurn))
	if c.Check(old, cookieAddr, 7, cookieStart.Add(10*cookieTurn+1<<32*time.Millisecond)) {
		t.Error("a cookie is good again after 49 days")
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// TestCookiesWithAClockThatGoesBack: a little disorder in the times it is given does not make new
// secrets.
func TestCookiesWithAClockThatGoesBack(t *testing.T) {
	c := NewCookies(nil, cookieStart)
	now := cookieStart.Add(cookieTurn)
	cookie := c.Make(cookieAddr, 7, now)
	for range 3 {
		c.Make(cookieAddr, 8, now.Add(-5*time.Millisecond))
		c.Make(cookieAddr, 8, cookieStart.Add(-time.Hour))
		if !c.Check(cookie, cookieAddr, 7, now.Add(time.Second)) {
			t.Fatal("refused")
		}
	}
}
