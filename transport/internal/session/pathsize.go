package session

import (
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// Each end finds the size of the largest datagram that its direction of the path carries. Bodies
// that do not fit are sent in parts (parts.go).
//
// A probe is a padded datagram; the answer shows that a datagram of that size has arrived. A client
// probes after its start and after each change of its address, with its heartbeats. A listener
// probes only when it doubts the size. While large datagrams are sent, no probes are necessary: a
// heartbeat reports the size of the largest datagram that its sender has received since the
// previous one. If none of several large datagrams was received, the path has probably shrunk: the
// end sends parts that every path carries, and probes again if it has more than one large body to
// send. It does so too for payloads after a time without large datagrams, in which a change would
// not be noticed.

// probeSizes are the sizes that are probed, in bytes: that of 900 bytes of IPv4; the size that is
// usual; the minimum that IPv6 carries; what tunnels leave of an Ethernet frame; and an Ethernet
// frame with IPv6 and IPv4.
var probeSizes = [...]uint16{872, wire.BaseDatagram, 1232, 1372, 1452, wire.MaxDatagram}

// baseStep is the index of [wire.BaseDatagram], which is probed first. A listener probes no larger
// ones.
const baseStep = 1

const (
	// probeTries is the number of probes of a size that may be lost. At 10 % loss in each
	// direction, all of them are lost in one of 150 searches.
	probeTries = 3
	// probeInterval is the minimum time between two probes, together with the round-trip time.
	probeInterval = time.Second / 2
	// staleTime is the time without large datagrams after which payloads are sent in parts at
	// first.
	staleTime = 1500 * time.Millisecond
	// lostLargest is the number of datagrams of the largest size that show, if none of them was
	// received, that the path has shrunk. If they differ in size, maxUnconfirmed reports do.
	lostLargest, maxUnconfirmed = 4, 3
	// reportDelay is the time for which a datagram may be missing in a report, together with the
	// round-trip time.
	reportDelay = 50 * time.Millisecond
	// growInterval is the time after which an end with large bodies tries a larger size again.
	growInterval = time.Minute
)

// pathSize is what an end knows of the largest datagram that it may send. The zero value is the
// state at the start and after a change of an address.
type pathSize struct {
	size     uint16 // the largest one that has arrived; 0: not known
	doubted  bool   // large datagrams were not received lately
	running  bool   // a search
	step     uint8  // index of the probed size
	failed   uint8  // probes of that size without an answer
	unproven uint8  // reports in a row that did not confirm large datagrams

	// As [wire.Excess].
	whole, wholeBefore uint8 // the largest datagram sent since the last report of the peer, and between the last two
	reported           uint8 // in that report
	largest            uint8 // datagrams as large as whole, up to lostLargest

	// Times in milliseconds since the start of the session; 0: never.
	probed  uint32 // the last probe of the size that is searched
	refuted uint32 // when probes of the usual size failed
	split   uint32 // when the last body was sent in parts
	large   uint32 // when the last large payload was sent in one datagram, or the last probe answered
	lastly  uint32 // when largest became lostLargest
}

// at returns a time for pathSize.
func (s *Session) at(now time.Time) uint32 { return uint32(now.Sub(s.start).Milliseconds()) }

// since returns the time from a time of pathSize to another one.
func since(at, now uint32) time.Duration { return time.Duration(now-at) * time.Millisecond }

// restart starts a search at a step.
func (p *pathSize) restart(step uint8) {
	p.running, p.step, p.failed, p.probed = true, step, 0, 0
}

// resetPathSize forgets the size, since the path has changed.
func (s *Session) resetPathSize() {
	s.pathSize = pathSize{}
	if s.client {
		s.pathSize.restart(baseStep)
	}
}

// searching reports whether a client has to find the size.
func (s *Session) searching() bool { return s.client && s.pathSize.running }

// sendLimit returns the maximum size of a datagram with a body of kind k that is sent now. Segments
// are sent again if they are lost, so they may show that the path has shrunk.
func (s *Session) sendLimit(now time.Time, k wire.Kind) int {
	p := &s.pathSize
	stale := k == wire.DataKind && p.large != 0 && since(p.large, s.at(now)) >= staleTime
	switch {
	case p.doubted || stale:
		return wire.MinDatagram
	case p.size == 0:
		return wire.BaseDatagram
	}
	return int(p.size)
}

// noteWhole records that a datagram of a size was sent. Only those count that not every path
// carries.
func (p *pathSize) noteWhole(now uint32, size int) {
	excess := wire.Excess(size)
	if excess == 0 {
		return
	}
	if excess > p.whole {
		p.whole, p.largest = excess, 0
	}
	if excess == p.whole && p.largest < lostLargest {
		p.largest++
		p.lastly = now
	}
}

// noteSplit records that a body was sent in parts. If that happens repeatedly, the end searches: a
// single large body is not worth a probe.
func (s *Session) noteSplit(now time.Time) {
	p := &s.pathSize
	at := s.at(now)
	repeated := p.split != 0 && since(p.split, at) < staleTime
	p.split = at
	if !repeated {
		return
	}
	switch usual := p.size == 0 || p.size >= wire.BaseDatagram; {
	case p.running:
	case usual && max(p.whole, p.wholeBefore) > wire.Excess(wire.BaseDatagram):
		p.size = 0
		p.restart(baseStep)
	case usual || p.size < wire.BaseDatagram && (p.refuted == 0 || since(p.refuted, at) >= growInterval):
		p.restart(baseStep)
	case p.size > wire.MinDatagram && s.sendLimit(now, wire.DataKind) < int(p.size):
		p.restart(stepOf(p.size))
	}
	if p.running && s.idle() {
		s.sendHeartbeat(now, true) // from now on, the peer reports each second
	}
	s.probePathSize(now)
}

// stepOf returns the index of a size, or baseStep if it is none of them.
func stepOf(size uint16) uint8 {
	if i := slices.Index(probeSizes[:], size); i >= 0 {
		return uint8(i)
	}
	return baseStep
}

// probePathSize sends a probe if one is due in a search.
func (s *Session) probePathSize(now time.Time) {
	p := &s.pathSize
	at := s.at(now)
	if !p.running || p.probed != 0 && since(p.probed, at) < probeInterval+s.path.RTT() {
		return
	}
	if p.probed != 0 && int32(s.at(s.received)-p.probed) > 0 {
		p.failed++
	}
	if p.failed == probeTries {
		again := p.giveUp(at)
		s.noteSize()
		if !again {
			return
		}
	}
	p.probed = at
	var zeros [wire.MaxDatagram]byte
	size := int(probeSizes[p.step])
	s.sendKind(s.remote, wire.ProbeKind, zeros[:size-s.around(wire.ProbeKind)])
	s.stats.ProbesSent++
	s.stats.ProbeBytes += uint64(size)
}

// giveUp ends the search at the probed size, and reports whether a smaller one is to be probed.
func (p *pathSize) giveUp(now uint32) bool {
	if p.size == 0 || p.size >= probeSizes[p.step] { // no smaller one is known to arrive
		p.size, p.doubted = wire.MinDatagram, false
	}
	if p.step == baseStep {
		p.refuted = now
	}
	if p.size == wire.MinDatagram && p.step > 0 {
		p.restart(p.step - 1)
		return true
	}
	p.running = false
	return false
}

func (s *Session) receiveProbe(now time.Time, h wire.Header, body []byte) error {
	if wire.IsProbeAnswer(body) {
		return s.receiveProbeAnswer(now, body)
	}
	if err := wire.ParseProbe(body); err != nil || !s.mayAnswer(now) {
		return err
	}
	size := h.Size() + len(body) + s.Suite().Overhead()
	s.sendKind(s.remote, wire.ProbeKind, wire.AppendProbeAnswer(nil, size))
	return nil
}

// receiveProbeAnswer handles the answer to the current probe. It ignores answers to earlier ones.
func (s *Session) receiveProbeAnswer(now time.Time, body []byte) error {
	size, err := wire.ParseProbeAnswer(body)
	p := &s.pathSize
	if err != nil || !p.running || p.probed == 0 || size != int(probeSizes[p.step]) {
		return err
	}
	grown := size > int(p.size)
	p.size, p.large = max(p.size, uint16(size)), s.at(now)
	p.doubted, p.unproven = false, 0
	p.whole, p.wholeBefore, p.largest = 0, 0, 0
	s.noteSize()
	if last := uint8(len(probeSizes)); grown && s.client && p.step >= baseStep && p.step+1 < last {
		p.restart(p.step + 1)
	} else {
		p.running = false
	}
	return nil
}

// receiveReport handles the size of the largest datagram that the peer has received between its
// last two heartbeats. Datagrams that were sent between the last two reports have arrived before
// one of the two.
func (s *Session) receiveReport(now time.Time, received uint8) {
	p := &s.pathSize
	switch all := max(p.whole, p.wholeBefore); {
	case all == 0:
	case received >= all:
		p.unproven, p.whole = 0, 0
	case p.wholeBefore > 0 && max(received, p.reported) >= p.wholeBefore:
		p.unproven = 0
	default:
		p.unproven++
	}
	overdue := since(p.lastly, s.at(now)) >= s.path.RTT()+reportDelay
	if received < p.whole && p.largest == lostLargest && overdue || p.unproven == maxUnconfirmed {
		p.doubted, p.unproven = p.size != wire.MinDatagram, 0
	}
	p.wholeBefore, p.whole, p.largest, p.reported = p.whole, 0, 0, received
}

// noteSize counts findings that the path is small.
func (s *Session) noteSize() {
	was := s.small
	if s.small = s.pathSize.size < wire.BaseDatagram; s.small && !was {
		s.stats.SmallPaths++
		s.foundSmall = true
	}
}

// TakeSmall reports once that the path was found to carry less than [wire.BaseDatagram].
func (s *Session) TakeSmall() bool {
	found := s.foundSmall
	s.foundSmall = false
	return found
}

// MaxDatagram returns the size of the largest datagram that the peer is known to receive, in bytes.
// It is 0 before this end knows more than the minimum of all paths.
func (s *Session) MaxDatagram() int { return int(s.pathSize.size) }

// MaxPayload returns the maximum size of a payload of [Session.Send]: what fits the largest
// datagram that the peer is known to receive, or [wire.MaxBody] if that is more.
func (s *Session) MaxPayload() int { return wire.BodyOf(max(s.MaxDatagram(), wire.BaseDatagram)) }
