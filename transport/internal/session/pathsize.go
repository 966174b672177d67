package session

import (
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// A client searches for the size of the largest datagram that its path carries. With its heartbeats
// it sends probes, one at a time; the answer shows that a datagram of that size has arrived. The
// next probe is larger, until several of a size are not answered although datagrams of the peer are
// received.

// probeSizes are the sizes that are probed, in bytes: the assumed size; the minimum that IPv6
// carries; what tunnels leave of an Ethernet frame; and an Ethernet frame with IPv6 and IPv4.
var probeSizes = [...]int{wire.BaseDatagram, 1232, 1372, 1452, wire.MaxDatagram}

// probeTries is the number of probes of a size that may be lost. At 10 % loss in each direction,
// all of them are lost in one of 150 searches.
const probeTries = 3

// probeInterval is the minimum time between two probes. It must exceed the round-trip time.
const probeInterval = time.Second / 2

// pathSizeSearch is the state of the search. The zero value is its start.
type pathSizeSearch struct {
	passed int       // the largest size that was answered; 0: none
	step   uint8     // index of the probed size; len(probeSizes): the search is complete
	failed uint8     // probes of that size
	sent   time.Time // the last probe of that size; zero: none
}

func (s *Session) searching() bool { return s.client && int(s.pathSize.step) < len(probeSizes) }

func (s *Session) probePathSize(now time.Time) {
	p := &s.pathSize
	if !s.searching() || !p.sent.IsZero() && now.Sub(p.sent) < probeInterval {
		return
	}
	if !p.sent.IsZero() && s.received.After(p.sent) {
		p.failed++
	}
	if p.failed == probeTries {
		p.step = uint8(len(probeSizes))
		return
	}
	p.sent = now
	var zeros [wire.MaxDatagram]byte
	size := probeSizes[p.step]
	s.sendKind(s.remote, wire.ProbeKind, zeros[:size-s.around(wire.ProbeKind)])
	s.stats.ProbesSent++
	s.stats.ProbeBytes += uint64(size)
}

func (s *Session) receiveProbe(now time.Time, h wire.Header, body []byte) error {
	if err := wire.ParseProbe(body); err != nil || !s.mayAnswer(now) {
		return err
	}
	size := h.Size() + len(body) + s.Suite().Overhead()
	s.sendKind(s.remote, wire.ProbeAnswerKind, wire.AppendProbeAnswer(nil, size))
	return nil
}

// receiveProbeAnswer handles the answer to the current probe. It ignores answers to earlier ones.
func (s *Session) receiveProbeAnswer(body []byte) (Verdict, error) {
	size, err := wire.ParseProbeAnswer(body)
	p := &s.pathSize
	switch {
	case err != nil || !s.client:
		return Unexpected, err
	case int(p.step) < len(probeSizes) && size == probeSizes[p.step]:
		*p = pathSizeSearch{passed: size, step: p.step + 1}
	}
	return Accepted, nil
}

// MaxDatagram returns the size of the largest datagram that the peer is known to receive. It is 0
// before the first probe was answered, and for a listener's session.
func (s *Session) MaxDatagram() int { return s.pathSize.passed }

// MaxPayload returns the maximum size of a payload of [Session.Send]: what fits the largest
// datagram that the peer is known, or else assumed, to receive.
func (s *Session) MaxPayload() int { return wire.BodyOf(max(s.pathSize.passed, wire.BaseDatagram)) }
