package session

import (
	"time"

	"github.com/uplink-rpc/uplink/internal/ratelimit"
)

// answerRate is how many answers a session gives to what the peer asks for: by heartbeats, probes, and datagrams from new
// addresses. A peer that keeps to the rules asks for some ten a second at most.
var answerRate = ratelimit.Rate{PerSecond: 20, Burst: 20}

// mayAnswer says whether there may be one more answer. It counts as given then.
func (s *Session) mayAnswer(now time.Time) bool {
	return s.answers.Take(now.Sub(s.start), answerRate, 1)
}
