package session

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"io"
	mrand "math/rand/v2"
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
)

// Path migration. A client's address can change without its knowledge. The client then receives
// nothing and sends long headers, by which the listener finds the session whatever the address. The
// listener validates a new address by a challenge before it sends anything else there.
//
// An on-path attacker can copy datagrams, send the copies from another address before the originals
// arrive, and relay challenges and responses. Validation alone therefore does not show where the
// client is. So the listener challenges all addresses from which the client's datagrams arrive at
// the same time, including the current one: a round. The first correct response wins the round. A
// candidate that wins becomes the current address only
//
//   - if the client reports that its own address has changed since (a newer generation in the
//     response), or
//   - if nothing was received from the current address for [currentSilence] while it was
//     challenged, or
//   - if the current address is contested and the candidate won [contestedWins] rounds in a row. It
//     is contested for [contestPeriod] after a migration: an attacker whose path is slower than the
//     direct one, or who stops relaying, loses the downlink.
const (
	silence             = 500 * time.Millisecond // a client that receives only challenges for this time sends long headers
	minLongPeriod       = time.Second            // minimum time after a hint or a change of the address
	challengeLongPeriod = 12 * time.Second       // minimum time after a challenge; longer than contestPeriod

	maxCandidates  = 4                      // maximum number of candidates, and of sampled other addresses in a round
	roundDelay     = 25 * time.Millisecond  // from a candidate's datagram to its round: copies arrive together
	roundInterval  = 50 * time.Millisecond  // between two rounds of a session
	maxRounds      = 64                     // number of past rounds whose responses still count: 3.2 s
	currentSilence = 300 * time.Millisecond // time without datagrams after which the client has left the current address
	contestPeriod  = 10 * time.Second       // time after a migration for which the address is contested
	contestedWins  = 3                      // number of consecutive rounds to win
	validationLife = 3 * time.Second        // time without a datagram from other addresses after which the validation ends
	responseLife   = time.Second            // time for which a candidate is kept after its last response
	recentNumbers  = 64                     // only this many of the newest datagrams show where the client is
)

// responseRate limits a client's responses to challenges.
var responseRate = ratelimit.Rate{PerSecond: 100, Burst: 20}

// candidate is an address that has responded to a challenge. The current address is one too.
type candidate struct {
	addr       Path
	received   time.Time // last authentic datagram from the address
	challenged time.Time // last challenge; zero: never
	responded  time.Time // last correct response; zero: none
	wins       int       // number of consecutive rounds won
}

// validation is a listener's search for its client's address. It exists while authentic datagrams
// arrive from addresses other than the current one.
type validation struct {
	secret   [16]byte  // key of the tokens in challenges
	random   mrand.PCG // source of the sample's random numbers
	received time.Time // last datagram from an address other than the current one
	next     time.Time // time of the next round; zero: none is due
	sent     time.Time // time of the last round
	current  candidate // its received time is initially the start of the validation
	// The last maxCandidates other addresses that responded.
	candidates []candidate
	// A random sample of the source addresses of other datagrams since the last round. Copies from
	// many addresses and the original have the same probability.
	sample  []Path
	sampled uint64 // number of datagrams that were considered for the sample
	round   uint32 // number of the last round; 24 bits are sent
	won     uint64 // bit n is set if round-n was won
	// The newest generation in a response, and the first round after that response. Earlier rounds
	// do not decide where a client is whose address has changed since then, because they may not
	// have challenged the new address.
	generation      uint8
	generationRound uint32
}

func (s *Session) newValidation(now time.Time) *validation {
	v := &validation{
		current: candidate{addr: s.remote, received: now}, generation: s.generation,
		candidates: make([]candidate, 0, maxCandidates), sample: make([]Path, 0, maxCandidates),
	}
	if _, err := io.ReadFull(cmp.Or(s.cfg.Random, rand.Reader), v.secret[:]); err != nil {
		panic("session: the random source failed: " + err.Error())
	}
	v.random.Seed(binary.LittleEndian.Uint64(v.secret[:]), 0)
	return v
}

// tokenSize is the size in bytes of the part of a challenge that depends on the address. The other
// three bytes are the number of the round.
const tokenSize = wire.ChallengeSize - 3

// token returns the token of challenges on a path.
func (v *validation) token(addr Path) [tokenSize]byte {
	mac := hmac.New(sha256.New, v.secret[:])
	peer, _ := addr.Addr.MarshalBinary() // addresses have no marshaling errors
	local, _ := addr.Local.MarshalBinary()
	mac.Write(peer)
	mac.Write(local)
	return [tokenSize]byte(mac.Sum(nil))
}

// find returns the candidate with the address addr, possibly the current one, or nil.
func (v *validation) find(addr Path) *candidate {
	if v.current.addr == addr {
		return &v.current
	}
	for i := range v.candidates {
		if v.candidates[i].addr == addr {
			return &v.candidates[i]
		}
	}
	return nil
}

// recent reports whether the packet number is new enough to show where the client is.
func (s *Session) recent(number uint64) bool { return number+recentNumbers >= s.window.Next() }

// observeAddress records the source address of an authentic datagram, which may be a duplicate. It
// does nothing at a client.
func (s *Session) observeAddress(now time.Time, from Path, number uint64) {
	if s.client || !s.recent(number) {
		return
	}
	if v := s.validation; v != nil && now.Sub(v.received) >= validationLife {
		s.validation = nil
	}
	if from == s.remote {
		if s.validation != nil {
			s.validation.current.received = now
		}
		return
	}
	if s.validation == nil {
		s.validation = s.newValidation(now)
	}
	v := s.validation
	v.received = now
	v.observe(now, from)
	if v.next.IsZero() {
		v.next = now.Add(max(roundDelay, v.sent.Add(roundInterval).Sub(now)))
	}
}

// observe records an authentic datagram from an address other than the current one.
func (v *validation) observe(now time.Time, from Path) {
	if c := v.find(from); c != nil && now.Sub(c.responded) < responseLife {
		c.received = now
		return
	}
	v.sampled++
	switch n := v.random.Uint64() % v.sampled; {
	case slices.Contains(v.sample, from):
	case len(v.sample) < maxCandidates:
		v.sample = append(v.sample, from)
	case n < maxCandidates:
		v.sample[n] = from
	}
}

// challengeAll starts a round. It challenges the current address, each candidate from which a
// datagram was received since its last challenge, and the sampled other addresses. A challenge is
// not longer than the shortest datagram that can cause it.
func (s *Session) challengeAll(now time.Time) {
	v := s.validation
	v.next, v.sent = time.Time{}, now
	v.round++
	v.won <<= 1
	for i := range v.candidates {
		if c := &v.candidates[i]; !c.received.Before(c.challenged) {
			c.challenged = now
			s.challenge(now, c.addr)
		}
	}
	for _, addr := range v.sample {
		s.challenge(now, addr)
	}
	v.sample, v.sampled = v.sample[:0], 0
	s.challenge(now, v.current.addr)
}

func (s *Session) challenge(now time.Time, to Path) {
	token, round := s.validation.token(to), s.validation.round
	s.sendKind(now, to, wire.ChallengeKind, append(token[:], byte(round), byte(round>>8), byte(round>>16)))
}

// receiveChallenge responds to a challenge. As long as challenges arrive, the client sends long
// headers, so that no datagram is lost while the listener does not know the client's address.
func (s *Session) receiveChallenge(now time.Time, from Path, body []byte) (Verdict, error) {
	data, err := wire.ParseChallenge(body)
	if err != nil || !s.client || !s.responses.Take(now.Sub(s.start), responseRate, 1) {
		return Unexpected, err
	}
	if now.Sub(s.served) >= silence {
		s.resetPathSize() // the path has probably changed
	}
	s.useLongHeaders(now.Add(challengeLongPeriod))
	s.sendKind(now, from, wire.ResponseKind, wire.AppendResponse(nil, wire.Response{Data: data, Generation: s.generation}))
	return Accepted, nil
}

// useLongHeaders makes a client send long headers at least until the given time.
func (s *Session) useLongHeaders(until time.Time) {
	s.long = true
	if until.After(s.longUntil) {
		s.longUntil = until
	}
}

// receiveResponse handles a client's response to a challenge, which may be a duplicate: the
// original and a copy arrive from different addresses, and either can be the client's.
func (s *Session) receiveResponse(now time.Time, from Path, body []byte) (Verdict, error) {
	r, err := wire.ParseResponse(body)
	v := s.validation
	if err != nil || v == nil {
		return Unexpected, err
	}
	round := uint32(r.Data[tokenSize]) | uint32(r.Data[tokenSize+1])<<8 | uint32(r.Data[tokenSize+2])<<16
	age := (v.round - round) & (1<<24 - 1)
	if age >= maxRounds || [tokenSize]byte(r.Data[:]) != v.token(from) {
		return Unexpected, nil
	}
	c := v.find(from)
	if c == nil {
		c = v.add(candidate{addr: from, received: now})
	}
	c.responded = now
	won := v.won>>age&1 == 0
	v.won |= 1 << age
	if newer(r.Generation, v.generation) {
		v.generation, v.generationRound = r.Generation, v.round+1
	}
	changed := newer(r.Generation, s.generation) && v.round-age >= v.generationRound
	s.finishRound(now, c, won, changed, r.Generation)
	return Accepted, nil
}

// add adds a candidate. If there are maxCandidates, it replaces the one with the oldest response.
func (v *validation) add(c candidate) *candidate {
	if len(v.candidates) < maxCandidates {
		v.candidates = append(v.candidates, c)
		return &v.candidates[len(v.candidates)-1]
	}
	oldest := &v.candidates[0]
	for i := range v.candidates {
		if v.candidates[i].responded.Before(oldest.responded) {
			oldest = &v.candidates[i]
		}
	}
	*oldest = c
	return oldest
}

// newer reports whether address generation a is newer than b, modulo 256.
func newer(a, b uint8) bool { return int8(a-b) > 0 }

// finishRound handles a correct response of candidate c. won reports whether the response won its
// round, changed whether the client reported a change of its address. finishRound migrates to c if
// the client is not at the current address.
func (s *Session) finishRound(now time.Time, c *candidate, won, changed bool, generation uint8) {
	v := s.validation
	contested := now.Before(s.contestedUntil)
	if won {
		wins := c.wins + 1
		for i := range v.candidates {
			v.candidates[i].wins = 0
		}
		c.wins = wins
	}
	if c == &v.current {
		if newer(generation, s.generation) {
			s.generation = generation
		}
		return
	}
	if contested {
		s.contestedUntil = now.Add(contestPeriod) // another address still responds
	}
	left := now.Sub(v.current.received) >= currentSilence
	if won && (changed || left || contested && c.wins >= contestedWins) {
		s.generation = generation
		s.migrate(now, c)
	}
}

// migrate makes a candidate the current address, and the former current address a candidate.
func (s *Session) migrate(now time.Time, c *candidate) {
	v := s.validation
	v.current, *c = *c, v.current
	v.current.wins, c.wins = 0, 0
	s.remote, s.contestedUntil, s.returned = v.current.addr, now.Add(contestPeriod), now.Sub(s.start)
	s.stats.PathMigrations++
	s.resetPathSize()
	s.sendHeartbeat(now, true) // informs the client that its new address is known
}

// Rebound records at a client that its own address has changed. The next response reports this to
// the listener.
func (s *Session) Rebound(now time.Time) {
	if s.state == Open {
		s.generation++
		s.unanswered.since = now
		s.resetPathSize()
		s.useLongHeaders(now.Add(minLongPeriod))
		s.sendHeartbeat(now, true)
	}
}

// Each end determines the size of the largest datagram that its direction of the path carries.
// Larger bodies are sent in parts (parts.go).
//
// A probe is a padded datagram; its answer shows that a datagram of that size has arrived. A client
// probes at its start and after each change of its address, together with its heartbeats. A
// listener probes only when it doubts the size. While large datagrams are sent, probes are not
// necessary: a heartbeat reports the size of the largest datagram received since the previous
// heartbeat. If none of several large datagrams was received, the path has probably shrunk. The end
// then sends parts that every path carries. If it has more than one large body to send, it probes
// again. It also sends payloads in parts after a time without large datagrams, in which it could
// not have noticed a change.

// probeSizes are the sizes of probes in bytes. They fill, in order: an IPv4 packet of 900 bytes, a
// datagram of the usual size, the minimum MTU of IPv6, an Ethernet frame less headers of tunnels,
// an Ethernet frame with IPv6, and one with IPv4.
var probeSizes = [...]uint16{872, wire.BaseDatagram, 1232, 1372, 1452, wire.MaxDatagram}

// baseStep is the index of [wire.BaseDatagram], the size that is probed first. A listener probes no
// larger sizes.
const baseStep = 1

const (
	// probeTries is the number of unanswered probes after which a size counts as too large. At 10 %
	// loss in each direction, one of 150 searches fails by packet loss.
	probeTries = 3
	// probeInterval, plus the round-trip time, is the minimum time between two probes.
	probeInterval = time.Second / 2
	// staleTime is the time without large datagrams after which the first large payloads are sent
	// in parts.
	staleTime = 1500 * time.Millisecond
	// The path has shrunk if none of lostLargest datagrams of the largest size was received or, for
	// datagrams of different sizes, if maxUnconfirmed consecutive reports do not confirm them.
	lostLargest, maxUnconfirmed = 4, 3
	// A report may miss datagrams sent within the last reportDelay plus one round-trip time.
	reportDelay = 50 * time.Millisecond
	// growInterval is the time after which an end with large bodies tries a larger size again.
	growInterval = time.Minute
)

// pathSize is the state of one end's search for the path size. The zero value is the state at the
// start and after a change of address.
type pathSize struct {
	size     uint16 // size of the largest datagram that has arrived, in bytes; 0: unknown
	doubted  bool   // recent large datagrams were not received
	running  bool   // a search is running
	step     uint8  // index of the probed size
	failed   uint8  // number of unanswered probes of this size
	unproven uint8  // number of consecutive reports that did not confirm large datagrams

	// Sizes of datagrams in units of [wire.Excess].
	whole       uint8 // largest datagram sent since the peer's last report
	wholeBefore uint8 // largest datagram sent between the peer's last two reports
	reported    uint8 // size in the last report
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

// resetPathSize discards the size after a change of the path.
func (s *Session) resetPathSize() {
	s.path.Restart()
	s.pathSize = pathSize{}
	if s.client {
		s.pathSize.restart(baseStep)
	}
}

// searching reports whether this is a client whose search is running.
func (s *Session) searching() bool { return s.client && s.pathSize.running }

// sendLimit returns the current maximum size in bytes of a datagram with a body of kind k.
// staleTime does not limit segments, because they are retransmitted if the path has shrunk.
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

// noteWhole records that a datagram was sent. It ignores sizes that every path carries.
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

// noteSplit records that a body was sent in parts. The second time within staleTime starts a
// search. A single large body does not justify a probe.
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
		s.sendHeartbeat(now, true) // makes the peer report each second from now on
	}
	s.probePathSize(now)
}

// stepOf returns the index of size in probeSizes, or baseStep if it is not there.
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
	s.sendKind(now, s.remote, wire.ProbeKind, zeros[:size-s.around(wire.ProbeKind)])
	s.stats.ProbesSent++
	s.stats.ProbeBytes += uint64(size)
}

// giveUp ends the search at the probed size. It reports whether to probe a smaller size.
func (p *pathSize) giveUp(now uint32) bool {
	if p.size == 0 || p.size >= probeSizes[p.step] { // no smaller size is known to arrive
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
	s.sendKind(now, s.remote, wire.ProbeKind, wire.AppendProbeAnswer(nil, size))
	return nil
}

// receiveProbeAnswer handles the answer to the current probe. It ignores answers to earlier probes.
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

// receiveReport handles a report of the peer: the size of the largest datagram that it received
// between its last two heartbeats, in units of [wire.Excess]. Unless it was lost, a datagram that
// was sent between the last two reports is contained in one of them.
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
		s.path.Restart() // the losses were no congestion
	}
	p.wholeBefore, p.whole, p.largest, p.reported = p.whole, 0, 0, received
}

// noteSize counts the times that the path is found to be small.
func (s *Session) noteSize() {
	was := s.small
	if s.small = s.pathSize.size < wire.BaseDatagram; s.small && !was {
		s.stats.SmallPaths++
		s.foundSmall = true
	}
}

// TakeSmall reports, once, that the path was found to carry less than [wire.BaseDatagram].
func (s *Session) TakeSmall() bool {
	found := s.foundSmall
	s.foundSmall = false
	return found
}

// MaxDatagram returns the size of the largest datagram that the peer is known to receive, in bytes.
// It is 0 as long as only the minimum of all paths is known.
func (s *Session) MaxDatagram() int { return int(s.pathSize.size) }

// MaxPayload returns the maximum size of a payload of [Session.Send]: the size that fits the
// largest datagram that the peer is known to receive, but at least [wire.MaxBody].
func (s *Session) MaxPayload() int { return wire.BodyOf(max(s.MaxDatagram(), wire.BaseDatagram)) }
