package session

import (
	"fmt"
	"strconv"

	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

const closeCopies = 3 // nothing acknowledges a close

// Close tells the peer that the session ends, if it is [Open], and makes it [Closed] without an error.
// Reliable messages that are not yet acknowledged may be lost. A Closed session stays as it is.
func (s *Session) Close(code wire.CloseCode, text string) {
	if s.state == Closed {
		return
	}
	if s.state == Open {
		s.sendClose(code, text)
	}
	s.end(nil)
}

// Replace is Close by a new session of the same client: the error is [ErrReplaced], at both ends.
func (s *Session) Replace() {
	if s.state != Closed {
		s.Close(wire.CloseReplaced, "")
		s.end(ErrReplaced)
	}
}

func (s *Session) sendClose(code wire.CloseCode, text string) {
	for range closeCopies {
		d := s.draft(wire.CloseKind)
		d.b = wire.AppendClose(d.b, wire.Close{Code: code, Text: []byte(text)})
		s.emit(s.remote, d)
	}
}

// inputClose ends the session as the peer has ended it.
func (s *Session) inputClose(body []byte) error {
	bye, err := wire.ParseClose(body)
	if err == nil {
		s.end(closeError(bye))
	}
	return err
}

// closeError is what the peer's close says. Its text is a stranger's, so it is quoted.
func closeError(c wire.Close) error {
	err := ErrClosedByPeer
	switch c.Code {
	case wire.CloseShutdown:
		err = ErrPeerShutdown
	case wire.CloseReplaced:
		err = ErrReplaced
	case wire.CloseNormal:
	}
	if len(c.Text) == 0 {
		return err
	}
	return fmt.Errorf("%w: %s", err, strconv.Quote(string(c.Text)))
}
