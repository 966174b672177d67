package session

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// Path migration. A client's address can change without its knowledge. The client then hears nothing, and names
// its session in each datagram (long headers), so that the listener finds the session whatever the address. The
// listener validates a new address by a challenge before it sends anything else there.
//
// An on-path observer can copy datagrams, send the copies from an address of his own before the originals
// arrive, and relay challenge and response. Validation alone therefore does not show where the client is. So the
// listener challenges all addresses from which the client's datagrams come at the same moment, the current one
// too: that is a round, and the first right response wins it. A candidate that wins becomes the current address
// only
//
//   - if the client says that its own address has changed since (a newer generation in the response), or
//   - if the current address has been silent for [currentSilence] while it was challenged, or
//   - if the current address is contested and the candidate won [contestedWins] rounds in a row. It is contested
//     for [settleTime] after a migration: whoever relays slower than the direct path, or stops, loses the
//     downlink.
const (
	silence        = 300 * time.Millisecond // a client that hears only challenges for so long names its session
	stayNamed      = time.Second            // for which it does so after that or after a hint
	stayChallenged = 12 * time.Second       // and after a challenge; more than settleTime
	deafAfter      = 2 * time.Second        // a client that asked in vain for so long takes another local address
	maxDeafAfter   = 16 * time.Second       // doubled each time up to this

	maxCandidates  = 4                      // addresses that answered, and as many others in a round
	roundDelay     = 25 * time.Millisecond  // from a candidate's datagram to its round: copies arrive together
	roundInterval  = 50 * time.Millisecond  // between two rounds of a session
	maxRounds      = 64                     // that can be answered: 3.2 s
	currentSilence = 300 * time.Millisecond // after which the client has left the current address
	settleTime     = 10 * time.Second       // for which an address is contested after a migration
	contestedWins  = 3                      // rounds
	validationLife = 3 * time.Second        // without a datagram from a candidate
	answerLife     = time.Second            // for which a candidate that answered is kept
	recentNumbers  = 64                     // datagrams so far behind the newest one still show an address
)

// responseRate limits a client's responses to challenges.
var responseRate = ratelimit.Rate{PerSecond: 100, Burst: 20}

// candidate is an address that answered a challenge, or the current one.
type candidate struct {
	addr       netip.AddrPort
	heard      time.Time // the last authentic datagram from there
	challenged time.Time // zero: not yet
	answered   time.Time // the last right response; zero: none
	wins       int       // rounds in a row
}

// validation is a listener's search for its client's address. There is one while authentic datagrams arrive from
// other addresses than the current one.
type validation struct {
	secret  [16]byte  // of the tokens in challenges
	random  rand.PCG  // of the sample
	heard   time.Time // the last datagram from another address than the current one
	next    time.Time // the next round; zero: none is due
	sent    time.Time // the last round
	current candidate // heard is at first when the validation began
	// Other addresses that answered: the last maxCandidates.
	candidates []candidate
	// A random sample of the datagrams since the last round that came from elsewhere. Of copies from many
	// addresses and the original, each has the same chance.
	sample  []netip.AddrPort
	sampled uint64 // datagrams
	round   uint32 // the last one; 24 bits are sent
	won     uint64 // bit n: round-n has been answered
	// The newest generation that a response had, and the first round after that response. Earlier rounds do not
	// decide where a client is that has changed its address since: its new one may not have been challenged.
	generation      uint8
	generationRound uint32
}

func (s *Session) newValidation(now time.Time) *validation {
	v := &validation{
		current: candidate{addr: s.remote, heard: now}, generation: s.generation,
		candidates: make([]candidate, 0, maxCandidates), sample: make([]netip.AddrPort, 0, maxCandidates),
	}
	fill(s.cfg.Random, v.secret[:])
	v.random.Seed(binary.LittleEndian.Uint64(v.secret[:]), 0)
	return v
}

// tokenSize is the size of the part of a challenge that only its address can know, in bytes. The other three
// bytes are the round.
const tokenSize = wire.ChallengeSize - 3

// token returns what a challenge to an address begins with.
func (v *validation) token(addr netip.AddrPort) [tokenSize]byte {
	mac := hmac.New(sha256.New, v.secret[:])
	b, _ := addr.MarshalBinary() // it has no error
	mac.Write(b)
	return [tokenSize]byte(mac.Sum(nil))
}

// find returns the candidate or current address addr, or nil.
func (v *validation) find(addr netip.AddrPort) *candidate {
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

// recent reports whether a packet number is near enough to the newest one to show where the client is.
func (s *Session) recent(number uint64) bool { return number+recentNumbers >= s.recv.Next() }

// locate takes the source address of an authentic datagram, which may be a duplicate. It does nothing for a client.
func (s *Session) locate(now time.Time, from netip.AddrPort, number uint64) {
	if s.client || !s.recent(number) {
		return
	}
	if v := s.validation; v != nil && now.Sub(v.heard) >= validationLife {
		s.validation = nil
	}
	if from == s.remote {
		if s.validation != nil {
			s.validation.current.heard = now
		}
		return
	}
	if s.validation == nil {
		s.validation = s.newValidation(now)
	}
	v := s.validation
	v.heard = now
	v.hear(now, from)
	if v.next.IsZero() {
		v.next = now.Add(roundDelay)
		if earliest := v.sent.Add(roundInterval); v.next.Before(earliest) {
			v.next = earliest
		}
	}
}

// hear notes that an authentic datagram came from another address than the current one.
func (v *validation) hear(now time.Time, from netip.AddrPort) {
	if c := v.find(from); c != nil && now.Sub(c.answered) < answerLife {
		c.heard = now
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

// challengeAll begins a round: it challenges the current address, each candidate that was heard since its last
// challenge, and the sample of other addresses. A challenge is no longer than the shortest datagram that causes it.
func (s *Session) challengeAll(now time.Time) {
	v := s.validation
	v.next, v.sent = time.Time{}, now
	v.round++
	v.won <<= 1
	for i := range v.candidates {
		if c := &v.candidates[i]; !c.heard.Before(c.challenged) {
			c.challenged = now
			s.challenge(c.addr)
		}
	}
	for _, addr := range v.sample {
		s.challenge(addr)
	}
	v.sample, v.sampled = v.sample[:0], 0
	s.challenge(v.current.addr)
}

func (s *Session) challenge(to netip.AddrPort) {
	token, round := s.validation.token(to), s.validation.round
	d := s.draft(wire.ChallengeKind)
	d.b = append(d.b, token[:]...)
	d.b = append(d.b, byte(round), byte(round>>8), byte(round>>16))
	s.emit(to, d)
}

// inputChallenge answers a listener's challenge. The client names its session for as long as challenges come, so
// that no datagram is lost while the listener does not know where the client is.
func (s *Session) inputChallenge(now time.Time, from netip.AddrPort, body []byte) (Verdict, error) {
	data, err := wire.ParseChallenge(body)
	if err != nil || !s.client || !s.responses.Take(now.Sub(s.start), responseRate, 1) {
		return Unexpected, err
	}
	if now.Sub(s.served) >= silence {
		s.probing = probing{} // the path is probably another one
	}
	s.nameSession(now.Add(stayChallenged))
	d := s.draft(wire.ResponseKind)
	d.b = wire.AppendResponse(d.b, wire.Response{Data: data, Generation: s.generation})
	s.emit(from, d)
	return Accepted, nil
}

// nameSession has a client send long headers, until a time at least.
func (s *Session) nameSession(until time.Time) {
	s.long = true
	if until.After(s.stay) {
		s.stay = until
	}
}

// inputResponse takes a client's answer to a challenge, which may be a duplicate: the original and a copy come
// from different addresses, and either can be the right one.
func (s *Session) inputResponse(now time.Time, from netip.AddrPort, body []byte) (Verdict, error) {
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
		c = v.admit(candidate{addr: from, heard: now})
	}
	c.answered = now
	won := v.won>>age&1 == 0
	v.won |= 1 << age
	if newer(r.Generation, v.generation) {
		v.generation, v.generationRound = r.Generation, v.round+1
	}
	changed := newer(r.Generation, s.generation) && v.round-age >= v.generationRound
	s.answered(now, c, won, changed, r.Generation)
	return Accepted, nil
}

// admit adds a candidate. If there are maxCandidates, it replaces the one whose last response is the oldest.
func (v *validation) admit(c candidate) *candidate {
	if len(v.candidates) < maxCandidates {
		v.candidates = append(v.candidates, c)
		return &v.candidates[len(v.candidates)-1]
	}
	oldest := &v.candidates[0]
	for i := range v.candidates {
		if v.candidates[i].answered.Before(oldest.answered) {
			oldest = &v.candidates[i]
		}
	}
	*oldest = c
	return oldest
}

// newer reports whether an address generation is newer than another one, modulo 256.
func newer(a, b uint8) bool { return int8(a-b) > 0 }

// answered takes a right response to a challenge, which won its round or not, and migrates to the address if the
// client is not at the current one. changed reports whether the client says that its address has changed.
func (s *Session) answered(now time.Time, c *candidate, won, changed bool, generation uint8) {
	v := s.validation
	contested := now.Before(s.settled)
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
		s.settled = now.Add(settleTime) // there is still another address that answers
	}
	left := now.Sub(v.current.heard) >= currentSilence
	if won && (changed || left || contested && c.wins >= contestedWins) {
		s.generation = generation
		s.migrate(now, c)
	}
}

// migrate makes a candidate the current address, and the current address a candidate.
func (s *Session) migrate(now time.Time, c *candidate) {
	v := s.validation
	v.current, *c = *c, v.current
	v.current.wins, c.wins = 0, 0
	s.remote, s.settled = v.current.addr, now.Add(settleTime)
	s.stats.PathMigrations++
	s.sendHeartbeat(now, true) // which tells the client that it has been found
}

// Moved tells a client's session that its own address has changed. The listener learns it from the next response.
func (s *Session) Moved(now time.Time) {
	if s.state == Open {
		s.generation++
		s.asked = now
		s.probing = probing{}
		s.nameSession(now.Add(stayNamed))
		s.sendHeartbeat(now, true)
	}
}

// goDeaf notes that a client has asked in vain. Answers to datagrams of its previous address are lost, so the
// next wait is twice as long: otherwise no answer would arrive in time where a round trip takes longer than one.
func (s *Session) goDeaf(now time.Time) {
	s.deaf, s.asked = true, now
	s.deafWait = min(2*max(deafAfter, s.deafWait), maxDeafAfter)
}

// deafAt returns when a client that has asked is deaf.
func (s *Session) deafAt() time.Time { return s.asked.Add(max(deafAfter, s.deafWait)) }

// TakeDeaf reports whether a client has asked in vain for so long that it should try another local address. It
// reports so once, and again after a longer time.
func (s *Session) TakeDeaf() bool {
	deaf := s.deaf
	s.deaf = false
	return deaf && s.state == Open
}
