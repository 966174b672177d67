package admission

import (
	"time"

	"github.com/uplink-rpc/uplink/token"
)

const (
	// maxUsedTokens is the maximum number of tokens remembered, about 25 MB.
	maxUsedTokens = 1 << 18
	sweepInterval = time.Minute
	// maxSetBack is the total time by which the wall clock may be set back without unused tokens
	// being refused.
	maxSetBack = 2 * time.Hour
	// maxLife limits the remaining lifetime of a token, so that no sum of durations overflows.
	maxLife = time.Duration(1 << 61)
)

// usedTokens is the set of tokens that have started a session and could still be valid. Only
// clients with valid tokens can make it grow.
//
// The wall clock decides whether a token has expired, but it may be set back. So a token is
// remembered for maxSetBack longer than its lifetime, on the monotonic clock. If a token expires no
// later than a token that was removed, it may have been used and removed too, and is refused. So no
// step of the wall clock, however large, makes a used token valid again.
type usedTokens struct {
	tokens map[token.ID]usedToken
	swept  time.Duration // monotonic time of the last sweep
	// forgotten is the latest expiry of all tokens removed, on the wall clock.
	forgotten time.Time
}

type usedToken struct {
	expires time.Time     // on the wall clock
	until   time.Duration // monotonic time at which the entry is removed
}

// newUsedToken returns the entry for a token that is used at the monotonic time now and the wall
// clock's time wall.
func newUsedToken(now time.Duration, wall, expires time.Time) usedToken {
	return usedToken{expires: expires, until: now + min(expires.Sub(wall), maxLife) + maxSetBack}
}

func (u *usedTokens) has(id token.ID) bool {
	_, ok := u.tokens[id]
	return ok
}

func (u *usedTokens) add(id token.ID, t usedToken) { u.tokens[id] = t }

// outlived reports whether a token with this expiry may have been used and then removed.
func (u *usedTokens) outlived(expires time.Time) bool { return !expires.After(u.forgotten) }

// full reports whether there is no room for another token. It sweeps at intervals.
func (u *usedTokens) full(now time.Duration, wall time.Time) bool {
	if now-u.swept >= sweepInterval || len(u.tokens) >= maxUsedTokens && now-u.swept >= time.Second {
		u.sweep(now, wall)
	}
	return len(u.tokens) >= maxUsedTokens
}

// sweep removes tokens that are due and, if the set is full, all expired tokens.
func (u *usedTokens) sweep(now time.Duration, wall time.Time) {
	u.swept = now
	crowded := len(u.tokens) >= maxUsedTokens
	for id, t := range u.tokens {
		if now >= t.until || crowded && !wall.Before(t.expires) {
			delete(u.tokens, id)
			if t.expires.After(u.forgotten) {
				u.forgotten = t.expires
			}
		}
	}
}
