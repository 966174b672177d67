package session

import (
	"fmt"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/transport/reliable"
	"github.com/uplink-rpc/uplink/internal/transport/seal"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
)

// maxReordering is the number of newer datagrams after which a payload is late. The layers above
// rely on it, because their sequence numbers are short.
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
	load := 0
	if h.Kind == wire.DataKind || h.Kind == wire.ReliableKind || h.Kind == wire.PartKind {
		load = len(b) + ipSize
	}
	s.path.Arrived(now.Sub(s.start), number, newest, load)
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
	if h.Report {
		s.heartbeat.busy = true
		report, payload, err := wire.ParseReport(body)
		if err != nil || !s.path.Reported(now.Sub(s.start), report, s.next) {
			return nil, Malformed
		}
		if body = payload; len(body) == 0 {
			return nil, Accepted
		}
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

// receiveDuplicate handles a datagram whose number was received before. The second of two copies
// may be the one from the client's address, so both count for path migration. Except for that it is
// dropped, and it is decrypted only if it can affect the migration.
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

// receivePart handles a part. number and size are the packet number and the size in bytes of its
// datagram. It returns the payload that the part completes, or nil.
func (s *Session) receivePart(now time.Time, number uint64, size int, part []byte) ([]byte, Verdict) {
	s.heartbeat.busy = true
	if s.parts == nil {
		s.parts = new(assembly)
	}
	s.parts.used = true
	p, err := s.parts.add(number, size, part)
	switch {
	case err != nil:
		return nil, Malformed
	case p == nil:
		return nil, Accepted
	case p.reliable:
		return nil, s.receiveSegments(now, p.body)
	case s.window.Behind(p.first) >= maxReordering:
		return nil, Late
	}
	s.number, s.size = p.first, uint16(p.wire)
	return p.body, Payload
}

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
	if s.reports(now, n) {
		return s.next, size + reportAround
	}
	if limit := s.sendLimit(now, wire.DataKind); size > limit {
		size = n + s.partsOf(n, limit)*(s.around(wire.PartKind)+wire.PartSize)
	}
	return s.next, size
}

// around returns the size in bytes of the header and tag of the next datagram of kind k.
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

// sendSegments is the output function of the reliable channel.
func (s *Session) sendSegments(now time.Time, b []byte) { s.sendBody(now, wire.ReliableKind, b) }

// sendStreams is the output function of the bulk channel.
func (s *Session) sendStreams(now time.Time, b []byte) {
	s.streaming = true
	s.sendBody(now, wire.ReliableKind, b)
	s.streaming = false
}

// SendRaw sends any body as a datagram of kind k. Package rogue uses it to violate the protocol. It
// returns [ErrNotOpen] in any state but [Open].
func (s *Session) SendRaw(k wire.Kind, body []byte) error {
	if s.state != Open {
		return ErrNotOpen
	}
	s.sendKind(s.received, s.remote, k, body)
	return nil
}

const closeCopies = 3 // several copies, because a close is not acknowledged

// Close notifies the peer of a cause if the session is [Open], and makes it [Closed] with that
// cause and text. The cause wraps one of the errors of package transport, which the peer gets too,
// with the text. Unacknowledged reliable messages may be lost. It has no effect on a Closed
// session.
func (s *Session) Close(cause error, text string) {
	if s.state == Open {
		body := wire.AppendClose(nil, wire.Close{Code: closeCode(cause), Text: []byte(text)})
		for range closeCopies {
			s.sendKind(s.received, s.remote, wire.CloseKind, body)
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

// Buffers is memory for building datagrams. A session needs it only while it sends. The zero value
// is ready for use. It is safe for concurrent use.
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
	if k == wire.DataKind && s.reports(now, len(b)) {
		s.sendReport(now, b)
		return
	}
	s.sendKind(now, s.remote, k, b)
}

// reportAround is the number of bytes by which a report makes a datagram larger.
const reportAround = wire.ShortSize - wire.DataSize + wire.ReportSize

// reports reports whether a payload of n bytes is sent with a report: if one is due, and the
// datagram fits every path.
func (s *Session) reports(now time.Time, n int) bool {
	return !s.long && s.path.Due(now.Sub(s.start)) && s.around(wire.DataKind)+n+reportAround <= wire.MinDatagram
}

// sendReport sends a report and a payload, which may be empty.
func (s *Session) sendReport(now time.Time, payload []byte) {
	var report [wire.ReportSize]byte
	r := s.path.Take(now.Sub(s.start))
	s.sendHeader(now, s.remote, wire.Header{Kind: wire.DataKind, Report: true}, wire.AppendReport(report[:0], r), payload)
}

// sendKind concatenates the pieces of a body, encrypts them, and sends them in a datagram of kind
// k.
func (s *Session) sendKind(now time.Time, to Path, k wire.Kind, body ...[]byte) {
	s.sendHeader(now, to, wire.Header{Kind: k, Long: s.long, ID: s.id}, body...)
}

// sendHeader is sendKind with a header, to which it adds the packet number.
func (s *Session) sendHeader(now time.Time, to Path, h wire.Header, body ...[]byte) {
	buf := s.cfg.Buffers.get()
	h.Number = uint32(s.next)
	b := wire.AppendHeader(buf[:0], h)
	header := len(b)
	for _, piece := range body {
		b = append(b, piece...)
	}
	b = s.sealer.Seal(b[:header], b[:header], b[header:], s.next)
	s.path.Departed(now.Sub(s.start), s.next, len(b)+ipSize, s.streaming)
	s.output(to, b)
	s.next++
	s.cfg.Buffers.pool.Put(buf)
}

func (s *Session) output(to Path, b []byte) {
	s.stats.DatagramsSent++
	s.stats.BytesSent += uint64(len(b))
	s.cfg.Output(to, b)
}

// partsOf returns the number of parts of a body of n bytes in datagrams of at most datagram bytes.
func (s *Session) partsOf(n, datagram int) int {
	room := datagram - s.around(wire.PartKind) - wire.PartSize
	return (n + room - 1) / room
}

// sendParts sends a body of kind k in parts of about the same size, whose datagrams have at most
// datagram bytes.
func (s *Session) sendParts(now time.Time, k wire.Kind, b []byte, datagram int) {
	p := wire.Part{Reliable: k == wire.ReliableKind, Count: s.partsOf(len(b), datagram)}
	for p.Index = range p.Count {
		end := len(b) * (p.Index + 1) / p.Count
		var header [wire.PartSize]byte
		s.pathSize.noteWhole(s.at(now), s.around(wire.PartKind)+wire.PartSize+end-p.Offset)
		s.sendKind(now, s.remote, wire.PartKind, wire.AppendPart(header[:0], p), b[p.Offset:end])
		p.Offset = end
	}
}
