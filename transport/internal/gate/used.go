package gate

import (
	"time"

	"github.com/uplink-rpc/uplink/token"
)

const (
	maxUsed       = 1 << 18 // tokens that are remembered, about 25 MB
	sweepInterval = time.Minute
)

// used are the tokens that have begun a session and have not expired, with the time at which they do. Only those who
// hold good tokens can make it grow.
type used struct {
	tokens map[token.ID]time.Time
	swept  time.Time
}

// has reports whether a token was used.
func (u *used) has(id token.ID) bool {
	_, ok := u.tokens[id]
	return ok
}

// full reports whether there is no room for another one.
func (u *used) full(now time.Time) bool {
	if now.Sub(u.swept) >= sweepInterval || len(u.tokens) >= maxUsed && now.Sub(u.swept) >= time.Second {
		u.swept = now
		for id, expires := range u.tokens {
			if !now.Before(expires) {
				delete(u.tokens, id)
			}
		}
	}
	return len(u.tokens) >= maxUsed
}

func (u *used) add(id token.ID, expires time.Time) { u.tokens[id] = expires }
