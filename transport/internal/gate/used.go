package gate

import (
	"time"

	"github.com/uplink-rpc/uplink/token"
)

const (
	// maxUsed is the maximum number of tokens remembered, about 25 MB.
	maxUsed       = 1 << 18
	sweepInterval = time.Minute
	// setBack is how far the wall clock can be set back, in all, without an effect on unused tokens.
	setBack = 2 * time.Hour
	// maxRest limits the rest of a token's life, so that no sum of durations overflows.
	maxRest = time.Duration(1 << 61)
)

// used is the set of tokens that have begun a session and could still pass as valid. Only holders of valid tokens
// can make it grow.
//
// The wall clock decides whether a token has expired, but it can be set back. So a token is remembered for setBack
// longer than it is valid, on the monotonic clock. A token that expired no later than a forgotten one may have been
// used, and is refused: no step of the wall clock makes a used token valid again, however far it goes.
type used struct {
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
	return usedToken{expires: expires, until: now + min(expires.Sub(wall), maxRest) + setBack}
}

// has reports whether a token was used.
func (u *used) has(id token.ID) bool {
	_, ok := u.tokens[id]
	return ok
}

// outlived reports whether a token with this expiry may have been used and forgotten.
func (u *used) outlived(expires time.Time) bool { return !expires.After(u.forgotten) }

// full reports whether there is no room for another token. It sweeps from time to time.
func (u *used) full(now time.Duration, wall time.Time) bool {
	if now-u.swept >= sweepInterval || len(u.tokens) >= maxUsed && now-u.swept >= time.Second {
		u.sweep(now, wall)
	}
	return len(u.tokens) >= maxUsed
}

// sweep forgets tokens whose time is over, or if there is no room, all that have expired.
func (u *used) sweep(now time.Duration, wall time.Time) {
	u.swept = now
	crowded := len(u.tokens) >= maxUsed
	for id, t := range u.tokens {
		if now >= t.until || crowded && !wall.Before(t.expires) {
			delete(u.tokens, id)
			if t.expires.After(u.forgotten) {
				u.forgotten = t.expires
			}
		}
	}
}

func (u *used) add(id token.ID, t usedToken) { u.tokens[id] = t }
