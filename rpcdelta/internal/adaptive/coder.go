package adaptive

import "github.com/uplink-rpc/uplink/internal/entropy"

// Coder encodes and decodes payloads. It is scratch: a Coder serves any number
// of streams, one call at a time. The zero value is ready to use.
type Coder struct {
	m   *Model
	enc entropy.Encoder
	dec entropy.Decoder
	p   past
	q   orient
	s   surprise

	oldest int
	buf    []byte  // what Measure codes
	cost   float64 // see spent
}

// Oldest is how many bits the last payload that was encoded had when its oldest row
// ended.
func (c *Coder) Oldest() int { return c.oldest }

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

// open sets up the view of a payload, and what it is coded from: nil where its
// baseline is not the frame that was learned last, or not known.
func (s *State) open(newest, base uint64, hasBase bool, known *Frames) (v view, l *live) {
	if !hasBase {
		return view{known: known, base: -1, floor: -1}, &s.m.first
	}
	if base >= newest || s.newest != int64(base) {
		return v, nil
	}
	v = look(known, s.newest, int64(newest)-s.ring)
	if v.find(v.base) < 0 {
		return v, nil
	}
	return v, &s.live
}

// fill sets up what coding frame seq against frame ref reads.
func (c *Coder) fill(v *view, seq, ref int64) {
	c.p.fill(v, seq, ref)
	if c.m.off != 0 {
		c.m.off.narrow(&c.p)
	}
}
