package session

import "github.com/uplink-rpc/uplink/transport/internal/wire"

// SendRaw seals body and sends it as a datagram of kind k, whatever it says. It is for clients that
// break the rules on purpose, see package rogue. It returns [ErrNotOpen] in any state but [Open].
func (s *Session) SendRaw(k wire.Kind, body []byte) error {
	if s.state != Open {
		return ErrNotOpen
	}
	d := s.draft(k)
	d.b = append(d.b, body...)
	s.emit(s.remote, d)
	return nil
}
