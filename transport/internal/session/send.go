package session

import (
	"fmt"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// Send sends b as one unreliable datagram, or in parts if the path may not carry it. It returns
// [ErrTooLarge] for more than [Session.MaxPayload] bytes and [ErrNotOpen] in any state but [Open].
// It does not allocate.
func (s *Session) Send(now time.Time, b []byte) error {
	if s.state != Open {
		return ErrNotOpen
	}
	if len(b) > wire.MaxBody && len(b) > s.MaxPayload() {
		return fmt.Errorf("%w: %d bytes, at most %d fit a datagram", ErrTooLarge, len(b), s.MaxPayload())
	}
	s.sendBody(now, wire.DataKind, b)
	return nil
}

// NextSend returns the packet number of the next datagram, and the total size in bytes of the
// datagrams that [Session.Send] would send for a payload of n bytes.
func (s *Session) NextSend(now time.Time, n int) (number uint64, size int) {
	size = s.around(wire.DataKind) + n
	if limit := s.sendLimit(now, wire.DataKind); size > limit {
		size = n + s.partsOf(n, limit)*(s.around(wire.PartKind)+wire.PartSize)
	}
	return s.next, size
}

// around returns the size of the header and tag of the next datagram.
func (s *Session) around(k wire.Kind) int {
	return wire.Header{Kind: k, Long: s.long}.Size() + s.Suite().Overhead()
}

// SendReliable queues the message b. It returns the errors of [reliable.Channel.Send], and
// [ErrNotOpen] in any state but [Open].
func (s *Session) SendReliable(now time.Time, b []byte) error {
	if s.state != Open {
		return ErrNotOpen
	}
	err := s.reliable.Send(now, b)
	s.endIfExhausted()
	return err
}

// Unacked returns the number of reliable messages that wait to be sent or acknowledged.
func (s *Session) Unacked() int { return s.reliable.Unacked() }

// ReliableRoom returns the size in bytes of the largest reliable message for which there is room
// now.
func (s *Session) ReliableRoom() int { return s.reliable.Room() }

func (s *Session) endIfExhausted() {
	if s.reliable.Exhausted() || s.bulk.channel != nil && s.bulk.channel.Exhausted() {
		s.end(ErrUnacknowledged)
	}
}

// sendSegments is the output function of the reliable channel and the bulk channel.
func (s *Session) sendSegments(now time.Time, b []byte) { s.sendBody(now, wire.ReliableKind, b) }

// SendRaw sends any body as a datagram of kind k. Package rogue uses it for protocol violations. It
// returns [ErrNotOpen] in any state but [Open].
func (s *Session) SendRaw(k wire.Kind, body []byte) error {
	if s.state != Open {
		return ErrNotOpen
	}
	s.sendKind(s.remote, k, body)
	return nil
}

const closeCopies = 3 // a close is not acknowledged

// Close notifies the peer of a cause if the session is [Open], and makes it [Closed] with that
// cause and text. The cause wraps one of the errors of package session, which the peer gets too,
// with the text. Unacknowledged reliable messages may be lost. It has no effect on a Closed
// session.
func (s *Session) Close(cause error, text string) {
	if s.state == Open {
		body := wire.AppendClose(nil, wire.Close{Code: closeCode(cause), Text: []byte(text)})
		for range closeCopies {
			s.sendKind(s.remote, wire.CloseKind, body)
		}
	}
	if s.state == Closed {
		return
	}
	if text != "" {
		cause = fmt.Errorf("%w: %s", cause, text)
	}
	s.end(cause)
}

// Buffers is memory for datagrams that are being built: a session needs it only while it sends. The
// zero value is ready for use. It is safe for concurrent use.
type Buffers struct{ pool sync.Pool }

type buffer [wire.MaxDatagram]byte

func (p *Buffers) get() *buffer {
	if b, ok := p.pool.Get().(*buffer); ok {
		return b
	}
	return new(buffer)
}

// sendBody sends a body of kind data or reliable. It sends parts if the path may not carry one
// datagram.
func (s *Session) sendBody(now time.Time, k wire.Kind, b []byte) {
	s.heartbeat.busy = true
	size := s.around(k) + len(b)
	if size > wire.MinDatagram {
		if limit := s.sendLimit(now, k); size > limit {
			s.sendParts(now, k, b, limit)
			s.noteSplit(now)
			return
		}
		s.pathSize.noteWhole(s.at(now), size)
		if k == wire.DataKind {
			s.pathSize.large = s.at(now)
		}
	}
	s.sendKind(s.remote, k, b)
}

// sendKind concatenates and encrypts the pieces of a body, and sends it in a datagram of kind k.
func (s *Session) sendKind(to Path, k wire.Kind, body ...[]byte) {
	buf := s.cfg.Buffers.get()
	b := wire.AppendHeader(buf[:0], wire.Header{Kind: k, Long: s.long, ID: s.id, Number: uint32(s.next)})
	header := len(b)
	for _, piece := range body {
		b = append(b, piece...)
	}
	s.output(to, s.sealer.Seal(b[:header], b[:header], b[header:], s.next))
	s.next++
	s.cfg.Buffers.pool.Put(buf)
}

func (s *Session) output(to Path, b []byte) {
	s.stats.DatagramsSent++
	s.stats.BytesSent += uint64(len(b))
	s.cfg.Output(to, b)
}
