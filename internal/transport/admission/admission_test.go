package admission

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/transport/seal"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
	"github.com/uplink-rpc/uplink/token"
)

// clocked is a controller whose two clocks the test controls.
type clocked struct {
	*Controller
	now  time.Duration // monotonic, since the start
	step time.Duration // by which the wall clock was set ahead
	next byte          // of token ids
}

func newClocked() *clocked {
	c := &clocked{}
	c.configure()
	return c
}

func (c *clocked) configure() {
	c.Controller = New(Config{
		Keys: []token.Key{token.Development()}, Server: func(a netip.AddrPort) bool { return a == server },
		Suites: []seal.Suite{seal.AES128GCM}, PerNetwork: rate(20, 40), Total: rate(500, 1000),
		Started: start, Wall: c.wall,
	})
}

func (c *clocked) wall() time.Time { return start.Add(c.now + c.step) }

func (c *clocked) time() time.Time { return start.Add(c.now) }

// pass is a token that is not encrypted.
type pass struct {
	token.Claims
	id token.ID
}

// issued returns a token issued now by the wall clock.
func (c *clocked) issued(life time.Duration) pass {
	c.next++
	return pass{
		token.Claims{Issued: c.wall().Truncate(issueUnit), Expires: c.wall().Add(life).Truncate(issueUnit), Servers: []netip.AddrPort{server}},
		token.ID{c.next},
	}
}

// use shows a token, and uses it if it is granted.
func (c *clocked) use(p pass) wire.Code {
	code := wire.TokenRefused
	if !c.used.full(c.now, c.wall()) {
		code = c.verify(c.now, c.wall(), p.Claims, p.id)
	}
	if code == wire.Granted {
		c.used.add(p.id, newUsedToken(c.now, c.wall(), p.Expires))
	}
	return code
}

func (c *clocked) want(t *testing.T, what string, p pass, want wire.Code) {
	t.Helper()
	if got := c.use(p); got != want {
		t.Errorf("%s after %v, with the wall clock %v ahead: code %d, want %d", what, c.now, c.step, got, want)
	}
}

// TestExpiryToTheMillisecond: a token is valid until the last millisecond before its expiry.
func TestExpiryToTheMillisecond(t *testing.T) {
	c := newClocked()
	for offset, want := range map[time.Duration]wire.Code{
		-time.Millisecond: wire.Granted, -1: wire.Granted, 0: wire.TokenExpired, time.Millisecond: wire.TokenExpired,
	} {
		p := c.issued(time.Second)
		p.Expires = c.wall().Add(-offset)
		c.want(t, offset.String(), p, want)
	}
}

// TestStaleToTheMillisecond: the times in tokens are rounded down, so one that was issued in the
// millisecond of the start is not stale.
func TestStaleToTheMillisecond(t *testing.T) {
	for _, started := range []time.Duration{0, 300 * time.Microsecond} {
		c := &clocked{step: started}
		c.configure()
		c.now = time.Second
		for _, back := range []time.Duration{0, time.Hour} {
			c.step -= back
			for early, want := range map[time.Duration]wire.Code{0: wire.Granted, time.Millisecond: wire.TokenStale} {
				p := c.issued(time.Minute)
				p.Issued = start.Add(-back - early)
				c.want(t, early.String()+" before the millisecond of the start", p, want)
			}
		}
	}
}

// TestStaleAfterAStep: what was issued before the start is stale, and nothing else, whichever way
// the wall clock steps.
func TestStaleAfterAStep(t *testing.T) {
	c := newClocked()
	before := c.issued(24 * time.Hour)
	before.Issued = start.Add(-10 * time.Second)
	c.now = time.Minute
	for _, step := range []time.Duration{0, time.Hour, -time.Hour, 0} {
		c.step = step
		want := wire.TokenStale
		if step < 0 {
			want = wire.TokenAhead
		}
		c.want(t, "issued before the start", before, want)
		c.want(t, "issued now", c.issued(time.Minute), wire.Granted)
		since := c.issued(24 * time.Hour)
		since.Issued = start.Add(time.Second)
		if step >= 0 {
			c.want(t, "issued since the start, by the clock as it was", since, wire.Granted)
		}
		ahead := c.issued(time.Minute)
		ahead.Issued = ahead.Issued.Add(clockSkew / 2)
		c.want(t, "issued by a clock that is ahead", ahead, wire.Granted)
	}
}

// TestTokenFromTheFuture: a token of a clock that is more than a minute ahead is refused, before
// and after a restart and steps of the wall clock.
func TestTokenFromTheFuture(t *testing.T) {
	c := newClocked()
	for _, step := range []time.Duration{0, time.Hour, -time.Hour} {
		c.step = step
		for ahead, want := range map[time.Duration]wire.Code{
			clockSkew: wire.Granted, clockSkew + time.Millisecond: wire.TokenAhead, 24 * time.Hour: wire.TokenAhead,
		} {
			p := c.issued(48 * time.Hour)
			p.Issued = p.Issued.Add(ahead)
			c.want(t, "issued by a clock that is "+ahead.String()+" ahead", p, want)
		}
	}
	c.cfg.AnyAge = true
	p := c.issued(48 * time.Hour)
	p.Issued = p.Issued.Add(time.Hour)
	c.want(t, "issued by a client with the development key", p, wire.Granted)
}

// TestAdmissionIgnoresTheWallClock: the limits are those of the monotonic clock, whatever the wall
// clock does.
func TestAdmissionIgnoresTheWallClock(t *testing.T) {
	c := newClocked()
	for _, step := range []time.Duration{0, time.Hour, 0, -time.Hour, 48 * time.Hour, -48 * time.Hour} {
		c.step = step
		n := 0
		for c.Allow(c.time(), client.Addr()) {
			n++
		}
		if want := 40; n != want {
			t.Errorf("the wall clock %v ahead: %d handshakes at once, want %d", step, n, want)
		}
		c.now += 2 * time.Second
	}
}

// TestUsedTokenAfterSteps: a used token stays used through any steps of the wall clock, and unused
// ones are accepted while it is set back by no more than maxSetBack.
func TestUsedTokenAfterSteps(t *testing.T) {
	const hour = time.Hour
	for _, steps := range [][]time.Duration{
		{0, hour, 0}, {0, -hour, 0}, {0, hour, -hour, hour, 0}, {0, -hour, -2 * hour}, {0, 24 * hour, 24 * hour}, {0, time.Second, 0, time.Second, 0},
	} {
		for _, pause := range []time.Duration{time.Second, 59 * time.Second, 10 * time.Minute, 3 * hour} {
			c := newClocked()
			var spent []pass
			for i := range 3 * len(steps) {
				c.step = steps[i/3]
				p := c.issued(time.Minute)
				c.want(t, "a new token", p, wire.Granted)
				spent = append(spent, p)
				for _, p := range spent {
					if code := c.use(p); code != wire.TokenUsed && code != wire.TokenExpired {
						t.Errorf("a used token after %v, with the wall clock %v ahead: code %d", c.now, c.step, code)
					}
				}
				c.now += pause
			}
		}
	}
}

// TestNoUsedTokenTwice tries all kinds of steps and pauses. Unused tokens are accepted while the
// wall clock is set back by no more than maxSetBack in all.
func TestNoUsedTokenTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newClocked()
		duration := rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(72*time.Hour)).Draw(t, "long")) >> rapid.IntRange(0, 30).Draw(t, "shift")
		})
		granted := map[token.ID]bool{}
		var all []pass
		var ahead time.Duration // the maximum step
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				c.now += duration.Draw(t, "pause")
			case 1:
				c.step += duration.Draw(t, "ahead")
			case 2:
				c.step -= duration.Draw(t, "back")
			default:
				p := c.issued(time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(time.Minute)).Draw(t, "life")))
				all = append(all, p)
			}
			ahead = max(ahead, c.step)
			for _, p := range all {
				code := c.use(p)
				if code == wire.Granted && granted[p.id] {
					t.Fatalf("a token was granted twice, the second time after %v", c.now)
				}
				valid := !granted[p.id] && c.wall().Before(p.Expires) && !p.Issued.After(c.wall().Add(clockSkew))
				if back := ahead - c.step; valid && back <= maxSetBack && p.Issued.After(start) && code != wire.Granted {
					t.Fatalf("an unused token got code %d, with the wall clock set back by %v", code, back)
				}
				granted[p.id] = granted[p.id] || code == wire.Granted
			}
		}
	})
}

// TestFarExpiry: a token that is valid for as long as time goes is remembered as long.
func TestFarExpiry(t *testing.T) {
	c := newClocked()
	p := c.issued(time.Minute)
	p.Expires = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	c.want(t, "a new token", p, wire.Granted)
	c.now += 1000 * time.Hour
	c.want(t, "a used token", p, wire.TokenUsed)
	c.want(t, "another one", c.issued(time.Minute), wire.Granted)
}

// TestUsedTokensAreForgotten: the table holds tokens for as long as they are valid, maxSetBack, and
// one sweep.
func TestUsedTokensAreForgotten(t *testing.T) {
	c := newClocked()
	const every, life = 10 * time.Second, 10 * time.Second
	most := 0
	for i := range 3000 {
		c.now += every
		p := c.issued(life)
		p.id = token.ID{1: byte(i), 2: byte(i >> 8)}
		c.want(t, "a new token", p, wire.Granted)
		most = max(most, len(c.used.tokens))
	}
	if want := int((maxSetBack+life+sweepInterval)/every) + 1; most > want {
		t.Errorf("%d tokens are remembered, want at most %d", most, want)
	}
}

// TestRoute: a listener with a route id accepts tokens with the same one only, and one without
// accepts any.
func TestRoute(t *testing.T) {
	for own, want := range map[string]map[string]wire.Code{
		"eu-1": {"eu-1": wire.Granted, "eu-2": wire.TokenServer, "eu-": wire.TokenServer, "": wire.TokenServer},
		"":     {"eu-1": wire.Granted, "": wire.Granted},
	} {
		c := newClocked()
		c.cfg.Route = []byte(own)
		for route, code := range want {
			p := c.issued(time.Minute)
			p.Route = []byte(route)
			c.want(t, fmt.Sprintf("a token with the route %q at a listener with %q", route, own), p, code)
		}
	}
}

// TestUsedTokensAreBounded fills the table. With tokens that are valid there is no room for more;
// of those that have expired it forgets, though none of them gets in if the wall clock is set back.
func TestUsedTokensAreBounded(t *testing.T) {
	c := newClocked()
	last := c.issued(time.Minute)
	for i := range maxUsedTokens {
		last.id = token.ID{1: byte(i), 2: byte(i >> 8), 3: byte(i >> 16)}
		c.used.add(last.id, newUsedToken(c.now, c.wall(), last.Expires))
	}
	busy := func() bool {
		_, err := c.Read(c.time(), wire.Hello{Key: c.cfg.Keys[0].ID(), Message: message(t, c.cfg.Keys[0], nil)})
		return errors.Is(err, ErrBusy)
	}
	for range 3 {
		if c.now += 10 * time.Second; !busy() {
			t.Errorf("after %v one more token of %d is read", c.now, maxUsedTokens)
		}
	}
	c.now += time.Minute
	if busy() {
		t.Errorf("%d expired tokens are remembered, and there is no room", len(c.used.tokens))
	}
	c.step = -time.Hour
	c.want(t, "a forgotten token", last, wire.TokenExpired)
	c.step = 0
	c.want(t, "a new token", c.issued(time.Minute), wire.Granted)
}
