package gate

import (
	"time"

	"github.com/uplink-rpc/uplink/token"
)

const (
	maxUsed       = 1 << 18 // tokens that are remembered, about 25 MB
	sweepInterval = time.Minute
)

// used are the tokens that have begun a session and have not expired. Only those who hold good tokens can
// make it grow.
type used struct {
	tokens map[token.ID]use
	swept  time.Time
}

type use struct {
	hello   Hash // that used it
	expires time.Time
}

// of returns how a token was used, if it was.
func (u *used) of(id token.ID) (Hash, bool) {
	v, ok := u.tokens[id]
	return v.hello, ok
}

// full reports whether there is no room for another one.
func (u *used) full(now time.Time) bool {
	if now.Sub(u.swept) >= sweepInterval || len(u.tokens) >= maxUsed && now.Sub(u.swept) >= time.Second {
		u.swept = now
		for id, v := range u.tokens {
			if !now.Before(v.expires) {
				delete(u.tokens, id)
			}
		}
	}
	return len(u.tokens) >= maxUsed
}

func (u *used) add(id token.ID, v use) { u.tokens[id] = v }
