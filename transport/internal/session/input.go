package session

import (
	"net/netip"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/seal"
	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// reach is how far behind the newest datagram a payload may come: layers above, whose sequences are short,
// depend on it.
const reach = 64

// Input takes a datagram that came from an address. It is opened in place. With the verdict [Payload] it
// returns the unreliable payload, which shares b's memory. Any other verdict comes without one; the verdicts
// after [Payload] are reasons to have dropped the datagram. Afterwards the state and [Session.Remote] may
// have changed, and messages may be ready to [Session.Receive]. A datagram that is not authentic changes
// nothing but the counts; the handshake's are, if anything, hints.
func (s *Session) Input(now time.Time, from netip.AddrPort, b []byte) ([]byte, Verdict) {
	h, err := wire.ParseHeader(b)
	if err == nil {
		return s.InputSealed(now, from, b, h)
	}
	v := s.inputUnsealed(now, from, b)
	s.count(b, v)
	return nil, v
}

// InputSealed is [Session.Input] for a datagram whose header was read already.
func (s *Session) InputSealed(now time.Time, from netip.AddrPort, b []byte, h wire.Header) ([]byte, Verdict) {
	payload, v := s.inputSealed(now, from, b, h)
	s.count(b, v)
	return payload, v
}

func (s *Session) count(b []byte, v Verdict) {
	s.stats.BytesReceived += uint64(len(b))
	s.stats.Verdicts[v]++
}

func (s *Session) inputUnsealed(now time.Time, from netip.AddrPort, b []byte) Verdict {
	form, err := wire.FormOf(b)
	switch {
	case err != nil:
		return Malformed
	case s.client && from != s.remote:
		return WrongSession
	case form == wire.HandshakeForm:
		return s.inputHandshake(now, b)
	}
	return Malformed
}

// inputSealed looks whether a datagram seems to be the session's; then at its number, then its seal, and only
// then at anything that it says.
func (s *Session) inputSealed(now time.Time, from netip.AddrPort, b []byte, h wire.Header) ([]byte, Verdict) {
	switch {
	case s.client && (h.Long || from != s.remote), h.Long && h.ID != s.id, !h.Long && from != s.remote:
		return nil, WrongSession
	case s.state == Closed || s.sealer == nil:
		return nil, Unexpected
	}
	number, v := s.recv.Check(h.Number, wire.NumberBits)
	switch v {
	case seal.New:
	case seal.Duplicate:
		return nil, s.inputDuplicate(now, from, b, h, number)
	case seal.Late:
		return nil, Late
	}
	sealed := b[h.Size():]
	body, ok := s.opener.Open(sealed[:0], b[:h.Size()], sealed, number)
	if !ok {
		return nil, Unauthenticated
	}
	newest := number >= s.recv.Next()
	s.recv.Mark(number)
	s.number = number
	s.accept(now, h.Kind)
	if h.Long || s.validation != nil { // else it came from where the peer is
		s.locate(now, from, number)
	}
	if h.Kind == wire.DataKind {
		s.beat.busy = true
		if !newest && s.recv.Overtaken(number) >= reach {
			return nil, Late
		}
		return body, Payload
	}
	return nil, s.inputBody(now, from, h, body)
}

// inputDuplicate takes a datagram whose number was marked before. Of two copies the one that comes second can
// be the one from the client's address, so both count for path migration. Nothing else is taken from it, and
// nothing is opened unless it can tell something.
func (s *Session) inputDuplicate(now time.Time, from netip.AddrPort, b []byte, h wire.Header, number uint64) Verdict {
	if s.client || !s.recent(number) || from == s.remote && s.validation == nil {
		return Duplicate
	}
	sealed := b[h.Size():]
	body, ok := s.opener.Open(sealed[:0], b[:h.Size()], sealed, number)
	if !ok {
		return Unauthenticated
	}
	s.locate(now, from, number)
	if h.Kind == wire.ResponseKind {
		if _, err := s.inputResponse(now, from, body); err != nil {
			return Malformed
		}
	}
	return Duplicate
}

// inputBody takes what is not data.
func (s *Session) inputBody(now time.Time, from netip.AddrPort, h wire.Header, body []byte) Verdict {
	var err error
	v := Accepted
	switch h.Kind {
	case wire.ReliableKind:
		s.beat.busy = true
		err = s.reliable.Input(now, body)
		s.endIfExhausted()
	case wire.HeartbeatKind:
		err = s.inputHeartbeat(now, body)
	case wire.CloseKind:
		err = s.inputClose(body)
	case wire.ChallengeKind:
		v, err = s.inputChallenge(now, from, body)
	case wire.ResponseKind:
		v, err = s.inputResponse(now, from, body)
	case wire.ProbeKind:
		err = s.inputProbe(now, h, body)
	case wire.ProbeAnswerKind:
		v, err = s.inputProbeAnswer(body)
	default:
		v = Unexpected
	}
	if err != nil {
		return Malformed
	}
	return v
}

// accept notes that the peer is alive, and knows this session.
func (s *Session) accept(now time.Time, k wire.Kind) {
	s.heard = now
	if s.doubt.active() {
		s.doubt = doubtState{}
	}
	if k != wire.ChallengeKind {
		s.served, s.asked, s.deaf, s.deafWait = now, time.Time{}, false, 0
		if s.long && !now.Before(s.stay) {
			s.long = false
		}
	}
	if s.state == Connecting {
		s.open(now)
	}
}

// Receive returns the next reliable message and true, or false if none is ready. The message is valid
// until the next call, also while other methods are called.
func (s *Session) Receive(now time.Time) ([]byte, bool) {
	if s.state != Open {
		return nil, false
	}
	b, ok, err := s.reliable.Receive(now)
	if err != nil {
		s.end(ErrProtocol)
		return nil, false
	}
	return b, ok
}
