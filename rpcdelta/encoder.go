package rpcdelta

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/uplink-rpc/uplink/ringcache"
	"github.com/uplink-rpc/uplink/rpcdelta/inspect"
	"github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"
	"github.com/uplink-rpc/uplink/rpcdelta/internal/packed"
	"github.com/uplink-rpc/uplink/rpcdelta/internal/wire"
	"github.com/uplink-rpc/uplink/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/schema"
)

// EncoderConfig configures an Encoder. Zero fields mean the defaults.
type EncoderConfig struct {
	// Codec must be that of the decoder; default [DefaultCodec].
	Codec Codec
	// RPC is the number in headers that distinguishes the RPCs of a connection, 0 to MaxRPC.
	// Headers are shortest for 0 and longest from 11 on; acks are longer from 8 on.
	RPC int
	// Ring is the number of sent frames to keep, 2 to MaxRing; default DefaultRing.
	Ring int
	// PeerRing is the number of frames that the decoder keeps; default DefaultRing. The encoder
	// does not use a baseline that the smaller of both rings may have evicted.
	PeerRing int
	// MaxPayload is the maximum size of a payload in bytes; default defaultMaxPayload.
	MaxPayload int
	// Redundancy is the number of older payloads whose frames each payload of the adaptive codec
	// repeats: RedundancyAuto (0, the default), RedundancyOff, or 1 to MaxRedundancy. Unless frames
	// are held back, each payload contains one new frame.
	Redundancy int
	// Delivery is the share of frames that RedundancyAuto aims to deliver, MinDelivery to
	// MaxDelivery; default DefaultDelivery.
	Delivery float64
	// RedundancyBytes is the maximum size in bytes of a payload with redundant frames; default
	// DefaultRedundancyBytes. New frames are sent whatever their size.
	RedundancyBytes int
	// Prior is the initial state of the adaptive codec, which must be that of the decoder; nil
	// means the built-in one.
	Prior *prior.Prior
	// Reliable means that the channel delivers every payload in order. The baseline is always the
	// frame before, and there are no acks.
	Reliable bool
}

// Check returns the error that [NewEncoder] would return for the settings of c.
func (c EncoderConfig) Check() error {
	_, err := c.withDefaults()
	return err
}

func (c EncoderConfig) withDefaults() (EncoderConfig, error) {
	c.MaxPayload = cmp.Or(c.MaxPayload, defaultMaxPayload)
	c.RedundancyBytes = cmp.Or(c.RedundancyBytes, DefaultRedundancyBytes)
	c.Delivery = cmp.Or(c.Delivery, DefaultDelivery)
	switch {
	case c.MaxPayload < wire.MaxHeader+1:
		return c, fmt.Errorf("rpcdelta: payloads of %d bytes are too small", c.MaxPayload)
	case c.Redundancy < RedundancyOff || c.Redundancy > MaxRedundancy:
		return c, fmt.Errorf("rpcdelta: Redundancy of %d frames, want at most %d, RedundancyAuto or RedundancyOff", c.Redundancy, MaxRedundancy)
	case !(c.Delivery >= MinDelivery && c.Delivery <= MaxDelivery):
		return c, fmt.Errorf("rpcdelta: Delivery of %v, want %v to %v", c.Delivery, MinDelivery, MaxDelivery)
	case c.RedundancyBytes < 0:
		return c, fmt.Errorf("rpcdelta: RedundancyBytes is %d", c.RedundancyBytes)
	}
	return c, errors.Join(checkCodec(&c.Codec), checkRPC(c.RPC), checkRing("Ring", &c.Ring), checkRing("PeerRing", &c.PeerRing))
}

// Encoder encodes frames to payloads, each as the difference from a frame that the decoder is known
// to hold. It neither reads a clock nor does I/O. Not safe for concurrent use.
type Encoder struct {
	format   *packed.Format
	cfg      EncoderConfig
	coder    coder
	sent     *ringcache.Ring[record]
	known    *adaptive.Frames // of these, the frames that the decoder accepted in this epoch
	reach    uint64           // maximum age of a frame that another refers to
	kept     uint64           // maximum age of a payload when its delivery status becomes known
	payload  payload
	spare    []byte // for a second attempt
	losses   lossMeter
	stats    DeliveryStats
	profiler profiler
	limit    int // maximum number of older payloads whose frames a payload repeats

	next       uint64 // sequence of the next frame
	held       int    // frames before it that no payload contains yet
	base       uint64 // newest frame that the decoder accepted
	hasBase    bool
	epoch      uint8
	resolved   uint64 // the delivery status of all payloads below this one is known
	acked      bool   // a payload was acked in this epoch
	checkEvery uint64
	checkAt    uint64 // sequence from which the next delta carries a hash
}

// record is a frame that was sent or is held back.
type record struct {
	schema.Frame
	older uint8 // frames before this one in the payload with this sequence
	fresh uint8 // those of its frames that no payload contained before; 0: there is no such payload
}

// NewEncoder returns an encoder for frames of schema s. The first frame has sequence 0. An error
// names the invalid setting.
func NewEncoder(s *schema.Schema, cfg EncoderConfig) (*Encoder, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	e := &Encoder{
		format: packed.Of(s),
		cfg:    cfg,
		// Frames are kept until their acks can have arrived, because the encoder must then learn
		// from them what the decoder learned.
		sent:       newRecords(s, cfg.Ring+2*(ackWindow+1)),
		known:      cfg.Codec.newFrames(s, min(cfg.Ring, cfg.PeerRing)),
		reach:      cfg.Codec.reach(min(cfg.Ring, cfg.PeerRing)),
		payload:    payload{frames: make([]*schema.Frame, 0, MaxRedundancy+1)},
		limit:      MaxRedundancy,
		losses:     newLossMeter(cfg.Delivery),
		checkEvery: max(1, uint64(s.RateHz())),
	}
	if e.coder = (rleCoder{packed.NewCodec(e.format)}); cfg.Codec == Adaptive {
		e.coder = newAdaptive(s, cfg.Prior, min(cfg.Ring, cfg.PeerRing), e.known, new(adaptive.Coder), false)
	}
	e.checkAt = e.checkEvery
	e.kept = uint64(e.sent.Cap() - MaxRedundancy)
	return e, nil
}

// Measure adds each payload that is encoded from now on to p; nil stops it. It codes each payload a
// second time, and does not allocate once warm. It panics if p is of another schema.
func (e *Encoder) Measure(p *inspect.Profile) {
	e.profiler = newProfiler(p, e.format)
}

// measure adds the payload that was just encoded to the profile.
func (e *Encoder) measure(h *wire.Header, i *Info, fresh int) {
	p := &e.payload
	p.hasBase, p.free = h.Distance != 0, h.FreeBits()
	e.profiler.payload(e.coder, p, i.HeaderBits, i.PayloadBits)
	for _, f := range p.frames[len(p.frames)-fresh:] {
		e.profiler.frame(f)
	}
}

// newRecords returns a ring of frames whose components share one array.
func newRecords(s *schema.Schema, capacity int) *ringcache.Ring[record] {
	frames := s.NewFrames(capacity)
	return ringcache.NewFunc(capacity, func(f *record) {
		f.Frame, frames = frames[0], frames[1:]
	})
}

// AppendFrame appends the payload of the next frame to dst and returns the extended slice. The
// payload consists of a header and the coded part, which repeats older frames as configured by
// Redundancy. f must be a valid frame of the schema, see [schema.Schema.Check]. If the payload
// exceeds MaxPayload, the error wraps [ErrTooLarge]. On an error, dst is returned unchanged, the
// sequence is not used and the encoder remains usable. If frames are held back, AppendFrame is
// equivalent to [Encoder.Hold] followed by [Encoder.AppendHeld]. It does not allocate once warm.
func (e *Encoder) AppendFrame(dst []byte, f *schema.Frame) ([]byte, Info, error) {
	if e.held > 0 {
		if err := e.Hold(f); err != nil {
			return dst, Info{}, err
		}
		out, info := e.AppendHeld(dst)
		return out, info, nil
	}
	if err := e.format.Check(f); err != nil {
		return dst, Info{}, err
	}
	h, out, older, ok := e.encode(dst, f, e.next, 1, e.chooseRedundancy())
	if !ok {
		return dst, Info{}, e.tooLarge(len(out) - len(dst))
	}
	e.put(f)
	return out, e.finish(e.next-1, h, len(out)-len(dst), older, 1), nil
}

func (e *Encoder) tooLarge(size int) error {
	return fmt.Errorf("%w: %s: %d bytes, want at most %d", ErrTooLarge, e.format.RPC(), size, e.cfg.MaxPayload)
}

// put stores f under the next sequence.
func (e *Encoder) put(f *schema.Frame) {
	slot := e.sent.Put(e.next)
	slot.CopyFrom(f)
	slot.older, slot.fresh = 0, 0
	e.next++
}

// finish records that payload n was encoded and returns its description.
func (e *Encoder) finish(n uint64, h wire.Header, size, older, fresh int) Info {
	if h.Checked {
		e.checkAt = n + e.checkEvery
	}
	info := Info{
		Seq: n, Kind: e.kind(h), BaselineAge: h.Distance,
		HeaderBits: e.cfg.Codec.headerBits(&h), Redundant: older, Held: fresh - 1,
	}
	info.PayloadBits = 8*size - info.HeaderBits
	for q := n + 1 - uint64(fresh); q <= n; q++ {
		info.FullBits += e.format.FullBits(&e.sent.Get(q).Frame)
	}
	slot := e.sent.Get(n)
	slot.older, slot.fresh = uint8(older), uint8(fresh)
	if e.profiler.Profile != nil {
		e.measure(&h, &info, fresh)
	}
	if e.cfg.Reliable {
		e.acked = true
		e.accept(n)
	}
	return info
}
