package admission

import (
	"time"

	"github.com/uplink-rpc/uplink/token"
)

const (
	// maxUsedTokens is the maximum number of tokens remembered, about 25 MB.
	maxUsedTokens = 1 << 18
	sweepInterval = time.Minute
	// maxSetBack is how far the wall clock may be set back, in all, without an effect on unused
	// tokens.
	maxSetBack = 2 * time.Hour
	// maxLife limits the remaining life of a token, so that no sum of durations overflows.
	maxLife = time.Duration(1 << 61)
)

// usedTokens is the set of tokens that have started a session and could still be valid. Only
// clients with valid tokens can make it grow.
//
// The wall clock decides whether a token has expired, but it may be set back. So a token is
// remembered for maxSetBack longer than it is valid, on the monotonic clock. A token that expires
// no later than one that was forgotten may have been used, and is refused: no step of the wall
// clock makes a used token valid again, however far it goes.
type usedTokens struct {
	tokens map[token.ID]usedToken
	swept  time.Duration // monotonic time of the last sweep
	// forgotten is the latest expiry of all tokens removed, on the wall clock.
	forgotten time.Time
}

type usedToken struct {
	expires time.Time     // on the wall clock
	until   time.Duration // monotonic time at which it is forgotten
}

// newUsedToken returns the entry for a token that is used now, at the time wall of the wall clock.
func newUsedToken(now time.Duration, wall, expires time.Time) usedToken {
	return usedToken{expires: expires, until: now + min(expires.Sub(wall), maxLife) + maxSetBack}
}

func (u *usedTokens) has(id token.ID) bool {
	_, ok := u.tokens[id]
	return ok
}

func (u *usedTokens) add(id token.ID, t usedToken) { u.tokens[id] = t }

// outlived reports whether a token with this expiry may have been used and forgotten.
func (u *usedTokens) outlived(expires time.Time) bool { return !expires.After(u.forgotten) }

// full reports whether there is no room for another token. It sweeps at intervals.
func (u *usedTokens) full(now time.Duration, wall time.Time) bool {
	if now-u.swept >= sweepInterval || len(u.tokens) >= maxUsedTokens && now-u.swept >= time.Second {
		u.sweep(now, wall)
	}
	return len(u.tokens) >= maxUsedTokens
}

// sweep forgets tokens that are due, or if there is no room, all that have expired.
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
