package session

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// Send sends b as one unreliable datagram. It returns [ErrTooLarge] for more than [Session.MaxPayload] bytes
// and [ErrNotOpen] in any state but [Open]. It allocates nothing.
func (s *Session) Send(b []byte) error {
	if s.state != Open {
		return ErrNotOpen
	}
	if len(b) > wire.MaxBody && len(b) > s.MaxPayload() {
		return fmt.Errorf("%w: %d bytes, at most %d fit a datagram", ErrTooLarge, len(b), s.MaxPayload())
	}
	s.beat.busy = true
	d := s.draft(wire.DataKind)
	d.b = append(d.b, b...)
	s.emit(s.remote, d)
	return nil
}

// NextSend returns the number of the next datagram, and its size if [Session.Send] sends n bytes in it.
func (s *Session) NextSend(n int) (number uint64, size int) {
	h := wire.Header{Long: s.long}
	return s.next, h.Size() + n + s.Suite().Overhead()
}

// SendReliable queues the message b. It returns the errors of [reliable.Channel.Send], and [ErrNotOpen]
// in any state but [Open].
func (s *Session) SendReliable(now time.Time, b []byte) error {
	if s.state != Open {
		return ErrNotOpen
	}
	err := s.reliable.Send(now, b)
	s.endIfExhausted()
	return err
}

// endIfExhausted ends the session if the reliable channel has given up.
func (s *Session) endIfExhausted() {
	if s.reliable.Exhausted() {
		s.end(ErrUnacknowledged)
	}
}

// sendSegments is the output of the reliable channel.
func (s *Session) sendSegments(b []byte) {
	s.beat.busy = true
	d := s.draft(wire.ReliableKind)
	d.b = append(d.b, b...)
	s.emit(s.remote, d)
}

// draft is a sealed datagram that is being written: its header, then its body.
type draft struct {
	buf    *buffer
	header int
	b      []byte
}

// draft starts a datagram in a shared buffer.
func (s *Session) draft(k wire.Kind) draft {
	h := wire.Header{Kind: k, Number: uint32(s.next)}
	if s.long {
		h.Long, h.ID = true, s.id
	}
	buf := s.cfg.Buffers.get()
	return draft{buf: buf, header: h.Size(), b: wire.AppendHeader(buf[:0], h)}
}

// emit seals a datagram that [Session.draft] started, and sends it.
func (s *Session) emit(to netip.AddrPort, d draft) {
	header := d.b[:d.header]
	s.output(to, s.sealer.Seal(header, header, d.b[d.header:], s.next))
	s.next++
	s.cfg.Buffers.put(d.buf)
}

// output sends any datagram, and counts it.
func (s *Session) output(to netip.AddrPort, b []byte) {
	s.stats.DatagramsSent++
	s.stats.BytesSent += uint64(len(b))
	s.cfg.Output(to, b)
}
