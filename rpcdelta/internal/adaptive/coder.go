package adaptive

import "github.com/uplink-rpc/uplink/internal/entropy"

// Coder encodes and decodes payloads. It is scratch: a Coder serves any number
// of streams of its Model, one call at a time.
type Coder struct {
	m   *Model
	enc entropy.Encoder
	dec entropy.Decoder
	p   past
	f   featureSet
	q   orient

	oldest int
}

// Oldest is how many bits the last payload that was encoded had when its oldest row
// ended.
func (c *Coder) Oldest() int { return c.oldest }

// NewCoder gives a Coder.
func (m *Model) NewCoder() *Coder { return &Coder{m: m} }

// oneRow is the chance of 65536 that a payload has one row, enoughRows that it
// has no more than those counted.
const (
	oneRow     = 60500
	enoughRows = 1 << 15
)

// room is the most rows of a payload.
func room(newest, base uint64, hasBase bool) int {
	if hasBase {
		return int(min(MaxRows, newest-base))
	}
	return int(min(MaxRows-1, newest)) + 1
}

func (c *Coder) encodeCount(n, most int) {
	p := uint32(oneRow)
	for i := 1; i < most; i++ {
		c.enc.Bit(n > i, p)
		if n == i {
			return
		}
		p = enoughRows
	}
}

func (c *Coder) decodeCount(most int) int {
	p := uint32(oneRow)
	n := 1
	for n < most && c.dec.Bit(p) {
		p = enoughRows
		n++
	}
	return n
}

// open sets up the view of a payload; d is nil where its baseline is not known.
func (s *State) open(newest, base uint64, hasBase bool, h History) (v view, d *digest) {
	v = view{history: h, base: -1}
	if !hasBase {
		return v, &s.m.prior
	}
	v.base, v.floor = int64(base), max(s.origin-1, int64(newest)-s.ring)
	if base >= newest || v.base <= v.floor || v.at(v.base) == nil {
		return v, nil
	}
	return v, s.at(v.base)
}
