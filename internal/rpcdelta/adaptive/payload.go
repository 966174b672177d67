package adaptive

import (
	"github.com/uplink-rpc/uplink/internal/rpcdelta/cost"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// Payload holds the frames of one payload and identifies their baseline.
type Payload struct {
	// Frames are consecutive frames, oldest first. Decode overwrites them and cuts the slice to the
	// number of frames received.
	Frames []*schema.Frame
	// Newest is the sequence number of the last frame.
	Newest uint64
	// Base is the sequence number of the baseline, which the first frame is coded against. Without
	// a baseline the first frame is a keyframe and Base is ignored.
	Base    uint64
	HasBase bool
	// FreeBits is the number of low bits, 0 to 7, of the last byte of the header that precedes the
	// payload. The payload starts in those bits, or at the next byte if there are none.
	FreeBits uint
	// Repeats reports that earlier payloads contain the first of several frames.
	Repeats bool
}

// Shape returns the shape of the payload.
func (p *Payload) Shape() Shape { return Shape{uint8(len(p.Frames)), p.Repeats} }

// maxFrames returns the maximum number of frames of the payload.
func (p *Payload) maxFrames() int {
	if p.HasBase {
		return int(min(MaxFrames, p.Newest-p.Base))
	}
	return int(min(MaxFrames-1, p.Newest)) + 1
}

// Coder encodes and decodes payloads. It holds scratch space only: one Coder serves any number of
// streams, one call at a time. The zero value is ready for use.
type Coder struct{ codec payloadCodec[encoding] }

// OldestBits returns the number of bits that the last encoded payload had after its oldest frame.
func (c *Coder) OldestBits() int { return c.codec.oldest }

// Encode appends the coded frames of p to dst and returns the extended slice. If p.FreeBits is not
// 0, those bits of dst's last byte must be zero. The baseline must be in known, must be the last
// frame that s has learned, and must be older than all frames, by less than the ring of s. Without
// a baseline only the initial state of s's model is read. Encode panics if these conditions do not
// hold, or if the number of frames is 0 or more than [MaxFrames]. It does not allocate if dst has
// room.
func (c *Coder) Encode(dst []byte, p *Payload, s *State, known *Frames) []byte {
	if len(p.Frames) == 0 || len(p.Frames) > p.maxFrames() {
		panic("adaptive: invalid number of frames")
	}
	x := &c.codec
	x.enc.Reset(dst, p.FreeBits)
	if err := x.payload(p, s, known); err != nil {
		panic(err)
	}
	return x.enc.Finish()
}

// Decode decodes src into p.Frames, which must have room for [MaxFrames] frames or for the distance
// from the baseline to the newest frame, and cuts p.Frames to the frames received. s and known are
// those of [Coder.Encode]. If p.FreeBits is not 0, src begins with the header's last byte. All
// decoded components are within their field's range. Byte strings are overwritten in place and grow
// to at most their field's maximum length. The error is [ErrMalformed], or [ErrBaseline] if the
// baseline is not in known or is not the last frame that s has learned; the frames are undefined
// then. src is not modified.
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

// Measure reports the cost of each part of a payload to m and returns the total in bits. Pass the
// arguments of a preceding [Coder.Encode], or of a [Coder.Decode] that filled p; s and known must
// not have changed since. It encodes the payload again and does not allocate once its buffer has
// grown.
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

// MeasureNext reports to m the cost of frame seq against the frame before it, as if the decoder had
// accepted all frames in recent. It reports false if recent does not hold the frame before. s is
// not changed, and may have learned other frames than recent holds. MeasureNext does not allocate
// once its buffer has grown.
func (c *Coder) MeasureNext(m cost.Meter, frame *schema.Frame, seq uint64, s *State, recent *Frames) bool {
	x := (*payloadCodec[measuring])(&c.codec)
	v := newView(recent, int64(seq)-1, -1)
	if seq == 0 || !x.refs.load(&v, int64(seq), int64(seq)-1) {
		return false
	}
	x.enc.Reset(x.buf[:0], 0)
	x.m, x.meter, x.cost = s.m, m, x.enc.Cost()
	if err := x.frame(frame, &s.learned); err != nil {
		panic(err) // only decoding fails
	}
	x.buf, x.meter = x.enc.Finish(), nil
	return true
}
