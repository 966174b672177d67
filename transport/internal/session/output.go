package session

import (
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// Send sends b as one unreliable datagram. It returns [ErrTooLarge] for more than [wire.MaxBody] bytes
// and [ErrNotOpen] in any state but [Open]. It allocates nothing.
func (s *Session) Send(b []byte) error {
	if s.state != Open {
		return ErrNotOpen
	}
	if len(b) > wire.MaxBody {
		return fmt.Errorf("%w: %d bytes, at most %d fit a datagram", ErrTooLarge, len(b), wire.MaxBody)
	}
	s.emit(append(s.datagram(wire.DataKind), b...))
	return nil
}

// SendReliable queues the message b. It returns the errors of [reliable.Channel.Send], and [ErrNotOpen]
// in any state but [Open].
func (s *Session) SendReliable(now time.Time, b []byte) error {
	if s.state != Open {
		return ErrNotOpen
	}
	return s.reliable.Send(now, b)
}

// sendSegments is the output of the reliable channel.
func (s *Session) sendSegments(b []byte) {
	s.emit(append(s.datagram(wire.ReliableKind), b...))
}

// datagram starts a numbered datagram in the session's buffer.
func (s *Session) datagram(k wire.Kind) []byte {
	return wire.AppendHeader(s.buf[:0], wire.Header{Kind: k, Tag: s.tag, Number: uint16(s.next)})
}

// emit sends a datagram that [Session.datagram] started.
func (s *Session) emit(b []byte) {
	s.next++
	s.output(b)
}

// output sends any datagram, and counts it.
func (s *Session) output(b []byte) {
	s.stats.DatagramsSent++
	s.stats.BytesSent += uint64(len(b))
	s.cfg.Output(b)
}
