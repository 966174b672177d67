package session

import (
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// A client looks for the size of the largest datagram that its path carries. Beside its heartbeats it sends
// probes, one at a time: the answer shows that a datagram of that size has arrived. The next one is larger, until
// several of a size are not answered although the peer is heard.

// probeSizes are what is tried, in bytes. With UDP and IP they make: what is assumed; the least that IPv6 carries;
// what tunnels leave of a frame of Ethernet; such a frame with IPv6, and with IPv4.
var probeSizes = [...]int{wire.BaseDatagram, 1232, 1372, 1452, wire.MaxDatagram}

// probeTries is how many probes of a size may be lost. In a row at a loss of 10 % each way that is one in 150.
const probeTries = 3

// probing is how far the search is. The zero value is its beginning.
type probing struct {
	passed int       // the size of the largest datagram known to arrive; 0: none
	step   uint8     // index of the size that is tried; len(probeSizes): the search is over
	failed uint8     // probes of that size
	sent   time.Time // the last of them; zero: none
}

// searching says that there are sizes to be tried.
func (s *Session) searching() bool { return s.client && int(s.probing.step) < len(probeSizes) }

// probe goes on with the search, where there is one.
func (s *Session) probe(now time.Time) {
	p := &s.probing
	if !s.searching() {
		return
	}
	if !p.sent.IsZero() && s.heard.After(p.sent) {
		p.failed++
	}
	if p.failed == probeTries {
		p.step = uint8(len(probeSizes))
		return
	}
	p.sent = now
	d := s.draft(wire.ProbeKind)
	d.b = wire.AppendProbe(d.b, probeSizes[p.step], s.sealer.Suite().Overhead())
	s.emit(s.remote, d)
	s.stats.ProbesSent++
	s.stats.ProbeBytes += uint64(probeSizes[p.step])
}

// inputProbe answers a probe: a datagram of that size does arrive.
func (s *Session) inputProbe(now time.Time, h wire.Header, body []byte) error {
	if err := wire.ParseProbe(body); err != nil || !s.mayAnswer(now) {
		return err
	}
	d := s.draft(wire.ProbeAnswerKind)
	d.b = wire.AppendProbeAnswer(d.b, h.Size()+len(body)+s.opener.Suite().Overhead())
	s.emit(s.remote, d)
	return nil
}

// inputProbeAnswer takes the answer to the last probe. That to an earlier one says nothing new.
func (s *Session) inputProbeAnswer(body []byte) (Verdict, error) {
	size, err := wire.ParseProbeAnswer(body)
	p := &s.probing
	switch {
	case err != nil || !s.client:
		return Unexpected, err
	case int(p.step) < len(probeSizes) && size == probeSizes[p.step]:
		*p = probing{passed: size, step: p.step + 1}
	}
	return Accepted, nil
}

// MaxDatagram returns the size of the largest datagram that is known to reach the peer, 0 before one of
// [wire.BaseDatagram] bytes has, and for a listener's session.
func (s *Session) MaxDatagram() int { return s.probing.passed }

// MaxPayload returns how many bytes [Session.Send] takes: what fits the largest datagram that is known, or else
// assumed, to reach the peer.
func (s *Session) MaxPayload() int { return wire.BodyOf(max(s.probing.passed, wire.BaseDatagram)) }
