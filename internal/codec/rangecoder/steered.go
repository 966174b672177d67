//go:build steered

package rangecoder

import "math/rand/v2"

// Decoder is like the decoder of builds without the tag steered, unless [Steer] makes its
// decisions.
type Decoder struct{ decoder }

// steering makes the decisions of all decoders, unless it is nil.
var steering *script

// Steer calls decode with a message and replaces the decisions of the coded part, which ends the
// message, by random ones. It returns the message with the encoding of these decisions as coded
// part. The result is well-formed, but typical only for a hostile sender. Unlike random bytes, it
// often contains improbable decisions. Not safe for concurrent use.
func Steer(r *rand.Rand, message []byte, decode func([]byte)) []byte {
	s := &script{r: r}
	steering = s
	defer func() { steering = nil }()
	decode(message)
	if !s.begun {
		return message
	}
	n := len(message) - s.replaced
	return append(message[:n:n], s.enc.Finish()...)
}

// script makes decisions at random, and encodes them.
type script struct {
	r        *rand.Rand
	enc      Encoder
	replaced int // size of the original coded part
	begun    bool
	mood     int
	left     int    // number of decisions left in the current mood
	forced   []bool // forced outcomes of the next decisions
}

// Moods of a script determine how it makes decisions.
const (
	plausible = iota // symbols have the probabilities of the models
	likely           // always the more probable outcome
	never            // always false; numbers are 0
	always
	coin
	moods
)

// maxScript is the size of a coded part, in bits, after which all decisions are false.
const maxScript = 8 * 1000

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

func (d *Decoder) Reset(in []byte, free uint) {
	d.decoder.Reset(in, free)
	if s := steering; s != nil {
		s.begun, s.replaced, s.forced = true, len(in), nil
		s.enc.Reset(nil, 0)
	}
}

func (d *Decoder) Complete() bool { return steering != nil || d.decoder.Complete() }

// Length forces the decisions of a length in two of three cases, because parsers tend to fail at
// numbers near 0 and at the largest sizes.
func (d *Decoder) Length(middle int) {
	s := steering
	if s == nil {
		return
	}
	n := 0
	switch k := s.r.IntN(12); {
	case k < 4 || s.next() == never:
		return
	case k < 8:
		n = s.r.IntN(3)
	default:
		n = s.r.IntN(MaxLength + 1)
	}
	s.forced = append(s.forced[:0], n > middle)
	for i := middle + 1; i <= n && i < MaxLength; i++ {
		s.forced = append(s.forced, n > i)
	}
	for i := middle; i > 0 && i >= n; i-- {
		s.forced = append(s.forced, n == i)
	}
}

func (d *Decoder) BitNoRenorm(p0 uint32) (b bool) {
	s := steering
	if s == nil {
		return d.decoder.BitNoRenorm(p0)
	}
	switch mood := s.next(); {
	case len(s.forced) > 0:
		b, s.forced = s.forced[0], s.forced[1:]
	case mood == plausible:
		b = s.r.Uint32N(Scale) >= p0
	case mood == likely:
		b = p0 < Half
	case mood == always:
		b = true
	case mood == coin:
		b = s.r.IntN(2) == 0
	}
	s.enc.BitNoRenorm(b, p0)
	s.enc.Renorm()
	return b
}

func (d *Decoder) Renorm() {
	if steering == nil {
		d.decoder.Renorm()
	}
}

func (d *Decoder) Symbol(t *Table) (v int) {
	s := steering
	if s == nil {
		return d.decoder.Symbol(t)
	}
	switch s.next() {
	case plausible, likely:
		for x := s.r.IntN(Scale); v < Symbols-1 && x >= int(t.cum[v+1]); v++ {
		}
	case always:
		v = Symbols - 1 - s.r.IntN(3)
	case coin:
		v = s.r.IntN(1 << s.r.IntN(7))
	}
	s.enc.Symbol(t, v)
	return v
}

func (d *Decoder) Raw(n uint) (v uint64) {
	s := steering
	if s == nil {
		return d.decoder.Raw(n)
	}
	all := uint64(1)<<n - 1
	switch s.next() {
	case plausible, likely:
		v = s.r.Uint64() & all
	case always:
		v = all
	case coin:
		v = s.r.Uint64() & all >> s.r.UintN(n+1)
	}
	s.enc.Raw(v, n)
	return v
}
