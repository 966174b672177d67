package snapshots

import (
	"math/rand/v2"

	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// script makes the decisions of a coded part at random and encodes them, so that a decoder makes
// the same ones. Unlike random bytes, it makes improbable decisions often: a sender that wants to
// do harm does so too.
type script struct {
	r        *rand.Rand
	enc      rangecoder.Encoder
	replaced []byte // the coded part in whose place the decisions are made
	begun    bool
	mood     int
	left     int    // decisions in this mood
	forced   []bool // the next decisions
}

// Moods of a script.
const (
	plausible = iota // as probable as the models say
	likely           // always the more probable outcome
	never            // always false, and numbers of 0
	always
	coin
	moods
)

// maxScript is the size of a coded part, in bits, from which on all decisions are false.
const maxScript = 8 * 1000

func (s *script) begin(replaced []byte) {
	s.replaced, s.begun, s.forced = replaced, true, nil
	s.enc.Reset(nil, 0)
}

func (s *script) next() int {
	if s.enc.Bits() > maxScript {
		return never
	}
	if s.left == 0 {
		s.mood, s.left = s.r.IntN(moods), 1+s.r.IntN(1<<s.r.IntN(6))
	}
	s.left--
	return s.mood
}

// length forces the decisions of a length two times of three: numbers next to 0 and of the largest
// sizes are where parsers fail.
func (s *script) length(mid int64) {
	n, most := int64(0), int64(32)
	switch k := s.r.IntN(12); {
	case k < 4 || s.next() == never:
		return
	case k < 8:
		n = s.r.Int64N(3)
	default:
		n = s.r.Int64N(most + 1)
	}
	s.forced = append(s.forced[:0], n > mid)
	for i := mid + 1; i <= n && i < most; i++ {
		s.forced = append(s.forced, n > i)
	}
	for i := mid; i > 0 && i >= n; i-- {
		s.forced = append(s.forced, n == i)
	}
}

func (s *script) decide(p int64) (b bool) {
	switch mood := s.next(); {
	case len(s.forced) > 0:
		b, s.forced = s.forced[0], s.forced[1:]
	case mood == plausible:
		b = s.r.Int64N(65536) < p
	case mood == likely:
		b = p > 32768
	case mood == always:
		b = true
	case mood == coin:
		b = s.r.IntN(2) == 0
	}
	s.enc.BitNoRenorm(b, uint32(65536-p))
	s.enc.Renorm()
	return b
}

func (s *script) raw(n int64) int64 {
	v, all := uint64(0), uint64(1)<<n-1
	switch s.next() {
	case plausible, likely:
		v = s.r.Uint64() & all
	case always:
		v = all
	case coin:
		v = s.r.Uint64() & all >> s.r.Int64N(n+1)
	}
	s.enc.Raw(v, uint(n))
	return int64(v)
}

func (s *script) symbol(f *[64]int64) (v int64) {
	switch s.next() {
	case plausible, likely:
		for x := s.r.Int64N(65536); x >= f[v]; v++ {
			x -= f[v]
		}
	case always:
		v = 63 - s.r.Int64N(3)
	case coin:
		v = s.r.Int64N(1 << s.r.IntN(7))
	}
	var freq [rangecoder.Symbols]uint16
	for i, n := range f {
		freq[i] = uint16(n)
	}
	var table rangecoder.Table
	table.Set(&freq)
	s.enc.Symbol(&table, int(v))
	return v
}

// finish returns a message whose coded part, at the end, is that of the script.
func (s *script) finish(message []byte) []byte {
	if !s.begun {
		return message
	}
	n := len(message) - len(s.replaced)
	return append(message[:n:n], s.enc.Finish()...)
}
