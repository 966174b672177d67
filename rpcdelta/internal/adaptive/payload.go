package adaptive

import (
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
	"github.com/uplink-rpc/uplink/rpcdelta/internal/cost"
)

// Payload holds the frames of one payload and what they are coded against.
type Payload struct {
	// Rows are consecutive frames, oldest first. Decode overwrites them and cuts the slice to the
	// number of frames received.
	Rows []*Row
	// Newest is the sequence number of the last row.
	Newest uint64
	// Base is the sequence number of the baseline, which the first row is coded against. Without a
	// baseline the first row is a keyframe and Base is ignored.
	Base    uint64
	HasBase bool
	// FreeBits is the number of low bits, 0 to 7, of the last byte of the header that precedes the
	// payload. The payload starts in those bits, or at the next byte if there are none.
	FreeBits uint
}

// maxRows returns the maximum number of rows of the payload.
func (p *Payload) maxRows() int {
	if p.HasBase {
		return int(min(MaxRows, p.Newest-p.Base))
	}
	return int(min(MaxRows-1, p.Newest)) + 1
}

// Coder encodes and decodes payloads. It holds scratch space only: one Coder serves any number of
// streams, one call at a time. The zero value is ready for use.
type Coder struct{ codec payloadCodec[encoding] }

// payloadCodec encodes, decodes or measures payloads, depending on its mode. The mode is a type
// parameter so that one description of the format serves all three without branches at run time:
// the compiler generates a copy of the methods for each mode, in which decodes and measures are
// constant. While decoding, the values passed to bit, raw and residual are ignored.
type payloadCodec[M mode] struct {
	m   *Model
	enc rangecoder.Encoder // encoding, measuring
	dec rangecoder.Decoder // decoding
	frameContext

	oldest int        // encoding: bits of the payload after its oldest row
	meter  cost.Meter // measuring: receives the cost of each part
	cost   float64    // measuring: bits encoded at the last call of spent
	buf    []byte     // measuring: output, discarded
}

// frameContext is the state of the row being coded that predictions depend on.
type frameContext struct {
	refs    refFrames
	orient  orientation
	context residualContext
}

// mode is the task of a payloadCodec. The types differ in size, since the compiler shares code
// between types that do not.
type mode interface {
	encoding | decoding | measuring
}

type (
	encoding  [0]byte
	decoding  [1]byte
	measuring [2]byte
)

func (c *payloadCodec[M]) decodes() bool {
	var m M
	return len(m) == len(decoding{})
}

func (c *payloadCodec[M]) measures() bool {
	var m M
	return len(m) == len(measuring{})
}

// OldestBits returns the number of bits that the last encoded payload had after its oldest row.
func (c *Coder) OldestBits() int { return c.codec.oldest }

// Encode appends the coded rows of p to dst and returns the extended slice. If p.FreeBits is not 0,
// those bits of dst's last byte must be zero. The baseline must be in known, must be the last frame
// that s has learned, and must be older than all rows, by less than the ring of s. Without a
// baseline only the initial state of s's model is read. Encode panics if these conditions do not
// hold, or if the number of rows is 0 or more than [MaxRows]. It does not allocate if dst has room.
func (c *Coder) Encode(dst []byte, p *Payload, s *State, known *Frames) []byte {
	if len(p.Rows) == 0 || len(p.Rows) > p.maxRows() {
		panic("adaptive: invalid number of rows")
	}
	x := &c.codec
	x.enc.Reset(dst, p.FreeBits)
	if err := x.payload(p, s, known); err != nil {
		panic(err)
	}
	return x.enc.Finish()
}

// Decode decodes src into p.Rows, which must have room for [MaxRows] rows or for the distance from
// the baseline to the newest row, and cuts p.Rows to the rows received. s and known are those of
// [Coder.Encode]. If p.FreeBits is not 0, src begins with the header's last byte. All decoded
// components are within their field's range. Byte strings are overwritten in place and grow to at
// most their field's maximum length. The error is [ErrMalformed], or [ErrBaseline] if the baseline
// is not in known or is not the last frame that s has learned; the rows are undefined then. src is
// not modified.
func (c *Coder) Decode(src []byte, p *Payload, s *State, known *Frames) error {
	x := (*payloadCodec[decoding])(&c.codec)
	x.dec.Reset(src, p.FreeBits)
	if err := x.payload(p, s, known); err != nil {
		return err
	}
	if !x.dec.Complete() {
		return ErrMalformed
	}
	return nil
}

// Measure reports the cost of each part of a payload to m and returns the total in bits. The
// arguments are those of a preceding [Coder.Encode], or of a [Coder.Decode] that filled p; s and
// known must not have changed since. It encodes the payload again and does not allocate once its
// buffer has grown.
func (c *Coder) Measure(m cost.Meter, p *Payload, s *State, known *Frames) (bits float64) {
	x := (*payloadCodec[measuring])(&c.codec)
	x.buf = x.buf[:0]
	if p.FreeBits > 0 {
		x.buf = append(x.buf, 0)
	}
	x.enc.Reset(x.buf, p.FreeBits)
	start := x.enc.Cost()
	x.cost, x.meter = start, m
	if err := x.payload(p, s, known); err != nil {
		panic(err)
	}
	x.buf, x.meter = x.enc.Finish(), nil
	return x.cost - start
}

// open returns the view of the frames that coding p reads, and the learned state: nil if the
// baseline is unknown or is not the last frame that s has learned.
func (s *State) open(p *Payload, known *Frames) (v view, l *modelState) {
	if !p.HasBase {
		return view{known: known, base: -1, floor: -1}, &s.m.initial
	}
	if p.Base >= p.Newest || s.newest != int64(p.Base) {
		return v, nil
	}
	v = newView(known, s.newest, int64(p.Newest)-s.ring)
	if v.find(v.base) < 0 {
		return v, nil
	}
	return v, &s.learned
}

// payload codes the number of rows, then each row against the one before it. The error is
// [ErrBaseline] or, while decoding, [ErrMalformed].
func (c *payloadCodec[M]) payload(p *Payload, s *State, known *Frames) error {
	v, l := s.open(p, known)
	if l == nil {
		return ErrBaseline
	}
	c.m = s.m
	n := c.count(len(p.Rows), p.maxRows())
	if n > len(p.Rows) {
		return ErrMalformed
	}
	p.Rows = p.Rows[:n]
	if c.measures() {
		c.meter.Count(c.spent())
	}
	v.first = int64(p.Newest) - int64(len(p.Rows)) + 1
	ref := v.base
	for i, row := range p.Rows {
		if c.measures() {
			c.meter.Row(i)
		}
		v.rows = p.Rows[:i]
		seq := v.first + int64(i)
		var err error
		if i == 0 && !p.HasBase {
			err = c.keyframe(row)
		} else {
			c.refs.load(&v, seq, ref)
			err = c.row(row, l)
		}
		if err != nil {
			return err
		}
		ref = seq
		if i == 0 && !c.decodes() {
			c.oldest = c.enc.Bits()
		}
	}
	return nil
}

// Probabilities of 65536: that a payload has a single row, and that it has no more rows than
// counted so far.
const (
	oneRow     = 60500
	enoughRows = 1 << 15
)

// count codes the number of rows, 1 to limit, in unary.
func (c *payloadCodec[M]) count(n, limit int) int {
	p := uint32(oneRow)
	i := 1
	for i < limit && c.bit(n > i, p) {
		p = enoughRows
		i++
	}
	return i
}

// bit codes a decision. p0 is the probability of false, of 65536.
// [payloadCodec.row] and [payloadCodec.numbers] repeat it, since it is too large to be inlined.
func (c *payloadCodec[M]) bit(b bool, p0 uint32) bool {
	if c.decodes() {
		b = c.dec.BitNoRenorm(p0)
		c.dec.Renorm()
	} else {
		c.enc.BitNoRenorm(b, p0)
		c.enc.Renorm()
	}
	return b
}

// raw codes the low n bits of v, n at most 64.
func (c *payloadCodec[M]) raw(v uint64, n uint) uint64 {
	if c.decodes() {
		return c.dec.Raw(n)
	}
	c.enc.Raw(v, n)
	return v
}

// spent returns the bits encoded since its last call.
func (c *payloadCodec[M]) spent() float64 {
	before := c.cost
	c.cost = c.enc.Cost()
	return c.cost - before
}
