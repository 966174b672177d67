package session

import (
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// Input takes a datagram from the peer's address. With the verdict [Payload] it returns the unreliable
// payload, which shares b's memory. Any other verdict comes without one; the verdicts after [Payload]
// are reasons to have dropped the datagram. Afterwards the state may have changed, and messages may be
// ready to [Session.Receive].
func (s *Session) Input(now time.Time, b []byte) ([]byte, Verdict) {
	payload, v := s.input(now, b)
	s.stats.DatagramsReceived++
	s.stats.BytesReceived += uint64(len(b))
	s.stats.Verdicts[v]++
	return payload, v
}

func (s *Session) input(now time.Time, b []byte) ([]byte, Verdict) {
	h, body, err := wire.ParseHeader(b)
	if err != nil {
		return nil, Malformed
	}
	switch h.Kind {
	case wire.DataKind, wire.ReliableKind, wire.HeartbeatKind, wire.CloseKind:
		return s.inputNumbered(now, h, body)
	case wire.WelcomeKind:
		return nil, s.inputWelcome(now, body)
	case wire.RefuseKind:
		return nil, s.inputRefuse(body)
	case wire.UnknownKind:
		return nil, s.inputUnknown(now, body)
	case wire.HelloKind: // a listener looks at these itself
	}
	return nil, Unexpected
}

// inputNumbered takes a datagram of the session proper. It is read before its number is marked as seen,
// so that a malformed one cannot displace the real one with its number.
func (s *Session) inputNumbered(now time.Time, h wire.Header, body []byte) ([]byte, Verdict) {
	if s.state == Closed || s.id == 0 {
		return nil, Unexpected
	}
	if h.Tag != s.tag {
		return nil, Stray
	}
	number, v := s.recv.check(h.Number)
	if v != Accepted {
		return nil, v
	}
	var beat wire.Heartbeat
	var bye wire.Close
	var err error
	switch h.Kind {
	case wire.HeartbeatKind:
		beat, err = wire.ParseHeartbeat(body)
	case wire.CloseKind:
		bye, err = wire.ParseClose(body)
	case wire.ReliableKind:
		err = s.reliable.Input(now, body)
	default: // data is opaque
	}
	if err != nil {
		return nil, Malformed
	}
	s.recv.mark(number)
	s.number = number
	s.accept(now)
	switch h.Kind {
	case wire.DataKind:
		return body, Payload
	case wire.HeartbeatKind:
		s.heartbeat(now, beat)
	case wire.CloseKind:
		s.end(closeError(bye))
	default: // messages wait in the reliable channel
	}
	return nil, Accepted
}

// accept notes that the peer is alive, and knows this session.
func (s *Session) accept(now time.Time) {
	s.heard = now
	s.doubt = doubtState{}
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
