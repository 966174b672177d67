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
		bye := wire.Close{Code: code, Text: []byte(text)}
		for range closeCopies {
			s.emit(wire.AppendClose(s.datagram(wire.CloseKind), bye))
		}
	}
	s.end(nil)
}

// Replace makes the session [Closed] with [ErrReplaced] and tells nobody: another session has the
// peer's address now.
func (s *Session) Replace() {
	if s.state != Closed {
		s.end(ErrReplaced)
	}
}

// closeError is what the peer's close says. Its text is a stranger's, so it is quoted.
func closeError(c wire.Close) error {
	err := ErrClosedByPeer
	if c.Code == wire.CloseShutdown {
		err = ErrPeerShutdown
	}
	if len(c.Text) == 0 {
		return err
	}
	return fmt.Errorf("%w: %s", err, strconv.Quote(string(c.Text)))
}
