package session

import (
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// Each end finds the size of the largest datagram that its direction of the path carries. Bodies
// that do not fit are sent in parts (parts.go).
//
// A probe is a padded datagram; its answer shows that a datagram of that size has arrived. A client
// probes at its start and after each change of its address, together with its heartbeats. A
// listener probes only when it doubts the size. While large datagrams are sent, probes are not
// necessary: a heartbeat reports the size of the largest datagram that its sender has received
// since the previous heartbeat. If none of several large datagrams was received, the path has
// probably shrunk. The end then sends parts that every path carries, and probes again if it has
// more than one large body to send. It does the same for payloads after a time without large
// datagrams, since it would not have noticed a change in this time.

// probeSizes are the sizes of probes, in bytes: 900 bytes of IPv4; the usual size; the minimum of
// IPv6; an Ethernet frame minus the headers of tunnels; an Ethernet frame with IPv6; and an
// Ethernet frame with IPv4.
var probeSizes = [...]uint16{872, wire.BaseDatagram, 1232, 1372, 1452, wire.MaxDatagram}

// baseStep is the index of [wire.BaseDatagram], which is probed first. A listener probes no larger
// ones.
const baseStep = 1

const (
	// probeTries is the number of unanswered probes after which a size counts as too large. At 10 %
	// loss in each direction, one of 150 searches fails by packet loss.
	probeTries = 3
	// probeInterval is the minimum time between two probes, together with the round-trip time.
	probeInterval = time.Second / 2
	// staleTime is the time without large datagrams after which the first large payloads are sent
	// in parts.
	staleTime = 1500 * time.Millisecond
	// If none of lostLargest datagrams of the largest size was received, the path has shrunk. If
	// the datagrams differ in size, maxUnconfirmed reports without confirmation show the same.
	lostLargest, maxUnconfirmed = 4, 3
	// A datagram may still be missing in a report for reportDelay plus one round-trip time.
	reportDelay = 50 * time.Millisecond
	// growInterval is the time after which an end with large bodies tries a larger size again.
	growInterval = time.Minute
)

// pathSize is the state of one end's search for the path size. The zero value is the state at the
// start and after a change of an address.
type pathSize struct {
	size     uint16 // of the largest datagram that has arrived, in bytes; 0: not known
	doubted  bool   // recent large datagrams were not received
	running  bool   // a search is running
	step     uint8  // index of the probed size
	failed   uint8  // number of unanswered probes of this size
	unproven uint8  // number of consecutive reports that did not confirm large datagrams

	// Sizes of datagrams in units of [wire.Excess].
	whole       uint8 // largest one sent since the last report of the peer
	wholeBefore uint8 // largest one sent between the last two reports
	reported    uint8 // the last report
	largest     uint8 // number of datagrams of size whole that were sent, at most lostLargest

	// Times in milliseconds since the start of the session; 0: never.
	probed  uint32 // last probe of the current search
	refuted uint32 // last time that probes of the usual size failed
	split   uint32 // last time that a body was sent in parts
	large   uint32 // last large payload in one datagram, or last answer to a probe
	lastly  uint32 // last increase of largest
}

// at converts a time to the unit of pathSize.
func (s *Session) at(now time.Time) uint32 { return uint32(now.Sub(s.start).Milliseconds()) }

// since returns the duration between two times of pathSize.
func since(at, now uint32) time.Duration { return time.Duration(now-at) * time.Millisecond }

// restart starts a search with the size of a step.
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

// searching reports whether this is a client whose search is running.
func (s *Session) searching() bool { return s.client && s.pathSize.running }

// sendLimit returns the maximum size in bytes of a datagram with a body of kind k that is sent now.
// The limit of staleTime does not apply to segments: they are retransmitted if the path has shrunk.
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

// noteWhole records that a datagram was sent. Datagrams of a size that every path carries do not
// count.
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

// noteSplit records that a body was sent in parts. If this happens twice within staleTime, a search
// starts. A single large body does not justify a probe.
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

// stepOf returns the index of a size in probeSizes, or baseStep if there is none.
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

// giveUp ends the search at the probed size, and reports whether to probe a smaller size.
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

// receiveReport handles a report of the peer: the size of the largest datagram that it has received
// between its last two heartbeats, in units of [wire.Excess]. A datagram that was sent between the
// last two reports is contained in one of them, unless it was lost.
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

// noteSize counts each time that the path is found to be small.
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
