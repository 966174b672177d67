package session

import (
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

const (
	doubtPeriod   = time.Second            // from the hint to the end of the session
	doubtInterval = 250 * time.Millisecond // between heartbeats meanwhile
	doubtNumbers  = 256                    // a hint's echo must be one of the last so many datagrams
)

// doubtState is a client's doubt whether the listener still knows its session. A listener that does not
// says so, but anybody who sees a datagram can say it too: so the client asks, and any accepted datagram
// ends the doubt.
type doubtState struct {
	until time.Time // zero: no doubt
}

func (d doubtState) active() bool { return !d.until.IsZero() }

func (d doubtState) lost(now time.Time) bool { return d.active() && !now.Before(d.until) }

// inputUnknown takes the hint. The echo of a datagram that did not name the session only says that the
// listener does not know the address any more: the client names it from now on.
func (s *Session) inputUnknown(now time.Time, b []byte) Verdict {
	u, err := wire.ParseUnknown(b)
	switch {
	case err != nil:
		return Malformed
	case s.state != Open || !s.sentLately(u.Echo):
		return Unexpected
	case !u.Echo.Long:
		known := s.long
		s.nameSession(now.Add(stayNamed))
		if !known {
			s.sendHeartbeat(now, true)
		}
	case !s.doubt.active():
		s.doubt.until = now.Add(doubtPeriod)
		s.sendHeartbeat(now, true)
	}
	return Accepted
}

// sentLately reports whether h can be the header of one of the last datagrams that this end sent.
func (s *Session) sentLately(h wire.Header) bool {
	age := (uint32(s.next) - h.Number) & (1<<wire.NumberBits - 1) // 1 for the newest
	return (!h.Long || h.ID == s.id) && age >= 1 && age <= doubtNumbers && uint64(age) <= s.next
}
