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
	"github.com/uplink-rpc/uplink/transport/internal/wire"
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
	minLongPeriod       = time.Second            // for this time after a hint or a change of the address
	challengeLongPeriod = 12 * time.Second       // and after a challenge; longer than contestPeriod

	maxCandidates  = 4                      // addresses that responded, and as many others in a round
	roundDelay     = 25 * time.Millisecond  // from a candidate's datagram to its round: copies arrive together
	roundInterval  = 50 * time.Millisecond  // between two rounds of a session
	maxRounds      = 64                     // that can be answered: 3.2 s
	currentSilence = 300 * time.Millisecond // after which the client has left the current address
	contestPeriod  = 10 * time.Second       // for which an address is contested after a migration
	contestedWins  = 3                      // rounds
	validationLife = 3 * time.Second        // without a datagram from a candidate
	responseLife   = time.Second            // for which a candidate that responded is kept
	recentNumbers  = 64                     // older datagrams do not show where the client is
)

// responseRate limits a client's responses to challenges.
var responseRate = ratelimit.Rate{PerSecond: 100, Burst: 20}

// candidate is an address that responded to a challenge, or the current one.
type candidate struct {
	addr       Path
	received   time.Time // the last authentic datagram from there
	challenged time.Time // zero: never
	responded  time.Time // the last correct response; zero: none
	wins       int       // rounds in a row
}

// validation is a listener's search for its client's address. It exists while authentic datagrams
// arrive from addresses other than the current one.
type validation struct {
	secret   [16]byte  // of the tokens in challenges
	random   mrand.PCG // of the sample
	received time.Time // the last datagram from another address than the current one
	next     time.Time // the next round; zero: none is due
	sent     time.Time // the last round
	current  candidate // its received time is at first the start of the validation
	// The last maxCandidates other addresses that responded.
	candidates []candidate
	// A random sample of the source addresses of other datagrams since the last round. Copies from
	// many addresses and the original have the same probability.
	sample  []Path
	sampled uint64 // datagrams
	round   uint32 // the last one; 24 bits are sent
	won     uint64 // bit n: round-n was won
	// The newest generation in a response, and the first round after that response. Earlier rounds
	// do not decide where a client is whose address has changed since: the new one may not have
	// been challenged.
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
// three bytes are the round.
const tokenSize = wire.ChallengeSize - 3

// token returns the token of challenges on a path.
func (v *validation) token(addr Path) [tokenSize]byte {
	mac := hmac.New(sha256.New, v.secret[:])
	peer, _ := addr.Addr.MarshalBinary() // these have no error
	local, _ := addr.Local.MarshalBinary()
	mac.Write(peer)
	mac.Write(local)
	return [tokenSize]byte(mac.Sum(nil))
}

// find returns the candidate with the address addr, which may be the current one, or nil.
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

// recent reports whether a packet number is recent enough to show where the client is.
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

// observe records an authentic datagram from another address than the current one.
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

// challengeAll starts a round: it challenges the current address, each candidate from which a
// datagram was received since its last challenge, and the sample of other addresses. A challenge is
// not longer than the shortest datagram that causes it.
func (s *Session) challengeAll(now time.Time) {
	v := s.validation
	v.next, v.sent = time.Time{}, now
	v.round++
	v.won <<= 1
	for i := range v.candidates {
		if c := &v.candidates[i]; !c.received.Before(c.challenged) {
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

func (s *Session) challenge(to Path) {
	token, round := s.validation.token(to), s.validation.round
	s.sendKind(to, wire.ChallengeKind, append(token[:], byte(round), byte(round>>8), byte(round>>16)))
}

// receiveChallenge responds to a challenge. The client sends long headers as long as challenges
// arrive, so that no datagram is lost while the listener does not know where the client is.
func (s *Session) receiveChallenge(now time.Time, from Path, body []byte) (Verdict, error) {
	data, err := wire.ParseChallenge(body)
	if err != nil || !s.client || !s.responses.Take(now.Sub(s.start), responseRate, 1) {
		return Unexpected, err
	}
	if now.Sub(s.served) >= silence {
		s.resetPathSize() // the path has probably changed
	}
	s.useLongHeaders(now.Add(challengeLongPeriod))
	s.sendKind(from, wire.ResponseKind, wire.AppendResponse(nil, wire.Response{Data: data, Generation: s.generation}))
	return Accepted, nil
}

// useLongHeaders makes a client send long headers, until a time at least.
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

// newer reports whether an address generation is newer than another one, modulo 256.
func newer(a, b uint8) bool { return int8(a-b) > 0 }

// finishRound handles a correct response, which won its round or not, and migrates to its address
// if the client is not at the current one. changed reports whether the client reported a change of
// its address.
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

// migrate makes a candidate the current address, and the current address a candidate.
func (s *Session) migrate(now time.Time, c *candidate) {
	v := s.validation
	v.current, *c = *c, v.current
	v.current.wins, c.wins = 0, 0
	s.remote, s.contestedUntil, s.returned = v.current.addr, now.Add(contestPeriod), now.Sub(s.start)
	s.stats.PathMigrations++
	s.resetPathSize()
	s.sendHeartbeat(now, true) // which tells the client that it was found
}

// Rebound tells a client's session that its own address has changed. The listener learns it from
// the next response.
func (s *Session) Rebound(now time.Time) {
	if s.state == Open {
		s.generation++
		s.unanswered.since = now
		s.resetPathSize()
		s.useLongHeaders(now.Add(minLongPeriod))
		s.sendHeartbeat(now, true)
	}
}
