package session

import (
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/reliable"
	"github.com/uplink-rpc/uplink/transport/internal/seal"
	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// maxReordering is the number of newer datagrams after which a payload is late. The layers above,
// whose sequence numbers are short, rely on it.
const maxReordering = 64

// Input handles a datagram from a source address, and decrypts it in place. With the verdict
// [Payload] it returns the unreliable payload, which shares b's memory. The verdicts after
// [Payload] are reasons why the datagram was dropped. Afterwards the state and [Session.Remote] may
// have changed, and messages may be ready for [Session.Receive]. An unauthenticated datagram
// changes only counters, except for the handshake's hints.
func (s *Session) Input(now time.Time, from Path, b []byte) (payload []byte, v Verdict) {
	h, err := wire.ParseHeader(b)
	if err == nil {
		payload, v = s.receiveEncrypted(now, from, b, h)
	} else {
		v = s.receiveHandshake(now, from, b)
	}
	s.stats.BytesReceived += uint64(len(b))
	s.stats.Verdicts[v]++
	return payload, v
}

// receiveEncrypted checks the session id and source address, then the packet number, then decrypts,
// and only then uses the contents.
func (s *Session) receiveEncrypted(now time.Time, from Path, b []byte, h wire.Header) ([]byte, Verdict) {
	switch {
	case h.Long && (s.client || h.ID != s.id), !h.Long && from != s.remote:
		return nil, WrongSession
	case s.state == Closed || s.sealer == nil:
		return nil, Unexpected
	}
	number, v := s.window.Check(h.Number, h.NumberBits())
	switch v {
	case seal.New:
	case seal.Duplicate:
		return nil, s.receiveDuplicate(now, from, b, h, number)
	case seal.Late:
		return nil, Late
	}
	ciphertext := b[h.Size():]
	body, ok := s.opener.Open(ciphertext[:0], b[:h.Size()], ciphertext, number)
	if !ok {
		return nil, Unauthenticated
	}
	newest := number >= s.window.Next()
	s.window.Mark(number)
	s.number, s.size = number, uint16(len(b))
	if now.Sub(s.served) >= silentAfter && from == s.remote && h.Kind != wire.ChallengeKind {
		s.returned = now.Sub(s.start)
	}
	s.accept(now, h.Kind)
	if h.Kind != wire.ProbeKind {
		s.largest = max(s.largest, uint16(len(b)))
	}
	if h.Long || s.validation != nil { // otherwise it came from the current address
		s.observeAddress(now, from, number)
	}
	if h.Kind == wire.PartKind {
		return s.receivePart(now, number, len(b), body)
	}
	if h.Kind == wire.DataKind {
		s.heartbeat.busy = true
		if !newest && s.window.Behind(number) >= maxReordering {
			return nil, Late
		}
		return body, Payload
	}
	return nil, s.receiveControl(now, from, h, body)
}

// receiveDuplicate handles a datagram whose number was received before. Of two copies, the second
// may be the one from the client's address, so both count for path migration. Otherwise it is
// dropped, and it is decrypted only if it can matter.
func (s *Session) receiveDuplicate(now time.Time, from Path, b []byte, h wire.Header, number uint64) Verdict {
	if s.client || !s.recent(number) || from == s.remote && s.validation == nil {
		return Duplicate
	}
	ciphertext := b[h.Size():]
	body, ok := s.opener.Open(ciphertext[:0], b[:h.Size()], ciphertext, number)
	if !ok {
		return Unauthenticated
	}
	s.observeAddress(now, from, number)
	if h.Kind == wire.ResponseKind {
		if _, err := s.receiveResponse(now, from, body); err != nil {
			return Malformed
		}
	}
	return Duplicate
}

// receiveControl handles the decrypted body of a datagram that is not a payload.
func (s *Session) receiveControl(now time.Time, from Path, h wire.Header, body []byte) Verdict {
	var err error
	v := Accepted
	switch h.Kind {
	case wire.ReliableKind:
		v = s.receiveSegments(now, body)
	case wire.HeartbeatKind:
		err = s.receiveHeartbeat(now, body)
	case wire.CloseKind:
		err = s.receiveClose(body)
	case wire.ChallengeKind:
		v, err = s.receiveChallenge(now, from, body)
	case wire.ResponseKind:
		v, err = s.receiveResponse(now, from, body)
	case wire.ProbeKind:
		err = s.receiveProbe(now, h, body)
	default:
		v = Unexpected
	}
	if err != nil {
		return Malformed
	}
	return v
}

// receiveSegments handles the body of a reliable datagram.
func (s *Session) receiveSegments(now time.Time, body []byte) Verdict {
	s.heartbeat.busy = true
	err := s.channelOf(body).Input(now, body)
	s.endIfExhausted()
	if err != nil {
		return Malformed
	}
	return Accepted
}

// accept records that an authentic datagram was received.
func (s *Session) accept(now time.Time, k wire.Kind) {
	s.received = now
	s.lossProbe = time.Time{}
	if k != wire.ChallengeKind {
		s.served, s.unanswered = now, unansweredState{}
		if s.long && !now.Before(s.longUntil) {
			s.long = false
		}
	}
	if s.state == Connecting {
		s.open(now)
	}
}

// receiveClose ends the session. The peer's text is untrusted, so it is quoted.
func (s *Session) receiveClose(body []byte) error {
	c, err := wire.ParseClose(body)
	if err != nil {
		return err
	}
	cause := s.closeError(c.Code)
	if len(c.Text) > 0 {
		cause = fmt.Errorf("%w: %q", cause, c.Text)
	}
	s.end(cause)
	return nil
}

// Receive copies the next reliable message to dst, grown if it has too little room, and returns it
// and true, or dst and false if none is ready.
func (s *Session) Receive(now time.Time, dst []byte) ([]byte, bool) {
	return s.receive(&s.reliable, now, dst)
}

func (s *Session) receive(c *reliable.Channel, now time.Time, dst []byte) ([]byte, bool) {
	if s.state != Open {
		return dst, false
	}
	b, ok, err := c.Receive(now, dst)
	if err != nil {
		s.end(ErrProtocol)
		return b, false
	}
	return b, ok
}
