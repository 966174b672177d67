package rpcdelta

import (
	"fmt"

	"github.com/uplink-rpc/uplink/ringcache"
	"github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"
	"github.com/uplink-rpc/uplink/schema"
)

// EncoderConfig says how an Encoder works. Zero fields mean the defaults.
type EncoderConfig struct {
	// Codec must be the decoder's; default [DefaultCodec].
	Codec Codec
	// RPC is the number in headers that tells RPCs of one connection apart, 0 to
	// MaxRPC. 0 has the shortest, 11 and above the longest; 8 and above have longer acks.
	RPC int
	// Ring is how many sent frames are kept, 2 to MaxRing; default DefaultRing.
	Ring int
	// PeerRing is how many the decoder keeps; default DefaultRing. The encoder
	// uses no baseline that the smaller of both rings may have evicted.
	PeerRing int
	// MaxPayload is the most bytes of a payload; default DefaultMaxPayload.
	MaxPayload int
	// Redundancy is how many older payloads' frames ride along in each payload of
	// the adaptive codec: RedundancyAuto, which is 0 and so the default,
	// RedundancyOff, or 1 to MaxRedundancy. Unless frames are held back, those are
	// as many frames.
	Redundancy int
	// Delivery is the share of frames that RedundancyAuto aims to have delivered,
	// MinDelivery to MaxDelivery; default DefaultDelivery.
	Delivery float64
	// RedundancyBytes is how long older frames may make a payload; default
	// DefaultRedundancyBytes. The newest frame goes whatever it takes.
	RedundancyBytes int
	// Prior is what the adaptive codec starts from, the same as the decoder's;
	// nil is the built-in one.
	Prior *Prior
	// Reliable says that payloads arrive in order, every one: the baseline is the
	// frame before, and there are no acks.
	Reliable bool
}

// Encoder makes payloads of frames, each the difference from a frame that the
// decoder is known to hold. It neither reads a clock nor does I/O. Not safe for
// concurrent use.
type Encoder struct {
	format  *format
	cfg     EncoderConfig
	coder   coder
	sent    *ringcache.Ring[record]
	known   *adaptive.Frames // of these, what the decoder took in this epoch
	reach   uint64           // how old a frame may be that another needs
	kept    uint64           // how old a payload may be when its fate becomes known
	payload payload
	spare   []byte // for a second attempt
	losses  lossMeter
	fates   Fates
	profile *Profile // or nil
	most    int      // older payloads whose frames may ride along

	next       uint64 // sequence of the next frame
	held       int    // frames before it that no payload had yet
	base       uint64 // newest frame that the decoder took
	hasBase    bool
	epoch      uint8
	resolved   uint64 // payloads below this are known to be processed or not
	acked      bool   // something was acked in this epoch
	checkEvery uint64
	checkAt    uint64 // sequence from which the next delta carries a hash
}

// record is a frame that was sent, or is held back.
type record struct {
	schema.Frame
	older uint8 // frames that rode along in the payload of its name
	fresh uint8 // those of them, itself included, that no payload had before; 0: no payload has its name
	taken bool  // the decoder is known to have taken it in this epoch
}

// NewEncoder makes an encoder of the schema's frames whose first frame has
// sequence 0. An error names the setting that is wrong.
func NewEncoder(s *schema.Schema, cfg EncoderConfig) (*Encoder, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	e := &Encoder{
		format: formatOf(s),
		cfg:    cfg,
		// Frames stay until an ack that speaks of them has come, so that what the
		// decoder learned when it took them can be repeated.
		sent:       newRecords(s, cfg.Ring+2*(AckWindow+1)),
		known:      cfg.Codec.newFrames(s, min(cfg.Ring, cfg.PeerRing)),
		reach:      cfg.Codec.reach(min(cfg.Ring, cfg.PeerRing)),
		payload:    payload{frames: make([]*schema.Frame, 0, MaxRedundancy+1)},
		most:       MaxRedundancy,
		losses:     newLossMeter(cfg.Delivery),
		checkEvery: max(1, uint64(s.RateHz())),
	}
	if e.coder = newRLE(e.format); cfg.Codec == Adaptive {
		e.coder = newAdaptive(e.format, cfg.Prior, min(cfg.Ring, cfg.PeerRing), e.known, new(adaptive.Coder), false)
	}
	e.checkAt = e.checkEvery
	e.kept = uint64(e.sent.Cap() - MaxRedundancy)
	return e, nil
}

// Measure has each payload that is made from now on added to p; nil stops it. It codes
// each payload once more, and allocates nothing once warm. It panics if p is of
// another schema.
func (e *Encoder) Measure(p *Profile) {
	p.mustFit(e.format)
	e.profile = p
}

// measure measures the payload that was just made.
func (e *Encoder) measure(h *header, i *Info, fresh int) {
	p := &e.payload
	p.hasBase, p.free = h.distance != 0, h.free()
	e.profile.payload(e.coder, p, i.HeaderBits, i.PayloadBits)
	for _, f := range p.frames[len(p.frames)-fresh:] {
		e.profile.frame(e.format, f)
	}
}

// newRecords makes a ring of frames whose components lie in one array.
func newRecords(s *schema.Schema, capacity int) *ringcache.Ring[record] {
	frames := s.NewFrames(capacity)
	return ringcache.NewFunc(capacity, func(f *record) {
		f.Frame, frames = frames[0], frames[1:]
	})
}

// AppendFrame appends the payload of the next frame to dst: header and coded
// part, with older frames that may be lost as far as Redundancy says. f must
// have the schema's shape and ranges, as Quantize makes it; else the error says
// what is wrong. A payload above MaxPayload is [ErrTooLarge] with its size. On an
// error dst is returned as it was, the sequence is not used, and the stream goes
// on. Where frames are held back it is [Encoder.Hold] and [Encoder.AppendHeld]. It
// allocates nothing once warm.
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
	return out, e.named(e.next-1, h, len(out)-len(dst), older, 1), nil
}

func (e *Encoder) tooLarge(size int) error {
	return fmt.Errorf("%w: %s: %d bytes, want at most %d", ErrTooLarge, e.format.RPC(), size, e.cfg.MaxPayload)
}

// put gives f the next sequence.
func (e *Encoder) put(f *schema.Frame) {
	slot := e.sent.Put(e.next)
	slot.CopyFrom(f)
	slot.older, slot.fresh, slot.taken = 0, 0, false
	e.next++
}

// named notes that payload n was made, and describes it.
func (e *Encoder) named(n uint64, h header, size, older, fresh int) Info {
	if h.checked {
		e.checkAt = n + e.checkEvery
	}
	info := Info{
		Seq: n, Kind: e.kind(h), BaselineAge: h.distance,
		HeaderBits: e.cfg.Codec.headerBits(&h), Older: older, Held: fresh - 1,
	}
	info.PayloadBits = 8*size - info.HeaderBits
	for q := n + 1 - uint64(fresh); q <= n; q++ {
		info.FullBits += e.format.fullBits(&e.sent.Get(q).Frame)
	}
	slot := e.sent.Get(n)
	slot.older, slot.fresh = uint8(older), uint8(fresh)
	if e.profile != nil {
		e.measure(&h, &info, fresh)
	}
	if e.cfg.Reliable {
		e.acked = true
		e.take(n)
	}
	return info
}
