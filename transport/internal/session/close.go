package session

import (
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

// closeText is what an error says of the peer's reason. The text is a stranger's, so it is quoted.
func closeText(c wire.Close) string {
	if len(c.Text) > 0 {
		return strconv.Quote(string(c.Text))
	}
	if c.Code == wire.CloseShutdown {
		return "the listener shut down"
	}
	return "no reason given"
}
