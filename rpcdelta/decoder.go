package rpcdelta

import (
	"errors"
	"fmt"

	"github.com/uplink-rpc/uplink/rpcdelta/inspect"
	"github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"
	"github.com/uplink-rpc/uplink/rpcdelta/internal/packed"
	"github.com/uplink-rpc/uplink/rpcdelta/internal/wire"
	"github.com/uplink-rpc/uplink/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/schema"
)

// DecoderConfig configures a Decoder. Zero fields mean the defaults.
type DecoderConfig struct {
	// Codec must be that of the encoder; default [DefaultCodec].
	Codec Codec
	// RPC is the RPC number in headers and acks, as in [EncoderConfig].
	RPC int
	// Ring is the number of frames to keep, 2 to MaxRing; default DefaultRing. The PeerRing of the
	// encoder must be equal.
	Ring int
	// PeerRing is the Ring of the encoder; default DefaultRing.
	PeerRing int
	// DeliverLate delivers frames of payloads that arrive out of order, marked as late, instead of
	// dropping them. They never become baselines.
	DeliverLate bool
	// Prior is that of the encoder; nil means the built-in one.
	Prior *prior.Prior
	// Reliable means that the channel delivers every payload in order.
	Reliable bool
	// Scratch, if not nil, is shared with other decoders, see [Scratch].
	Scratch *Scratch
}

// maxLate is the maximum number of newer payloads that may arrive before one that is still
// delivered.
const maxLate = 64

// Delivery is a decoded frame.
type Delivery struct {
	Info
	// Missed is the number of undelivered frames between this one and the one delivered before it.
	Missed uint64
	// Late reports that newer frames were delivered before.
	Late bool
	// Frame is valid until the next call of Decode, see [Scratch].
	Frame *schema.Frame
}

// Decoder decodes payloads to frames. Payloads may be lost, duplicated, reordered or forged; the
// decoder reports those that it drops. Not safe for concurrent use.
//
// The caller must drop a payload that arrives after one whose newest frame is 64 or more newer,
// since short headers contain 7 bits of the sequence. That is after 64 newer payloads, or after
// 64/k payloads if each contains up to k new frames that were held back ([Encoder.Hold]). A decoder
// that replaces another must not receive payloads that were sent to the other. Package transport
// ensures both.
type Decoder struct {
	format      *packed.Format
	cfg         DecoderConfig
	coder       coder
	ring        *adaptive.Frames // frames accepted in this epoch
	reach       uint64           // maximum age of a frame that another refers to
	scratch     *Scratch
	profiler    profiler
	explanation *inspect.Explanation // likewise

	started     bool // a payload was accepted; the fields below are valid
	newest      uint64
	processed   uint64 // bit i: payload newest-1-i was processed
	delivered   uint64 // bit i: frame newest-1-i was delivered
	epoch       uint8
	first       uint64 // first payload processed in this epoch
	known       uint64 // the encoder knows the status of all payloads below this one
	resetReason error
	ackDue      bool
}

// NewDecoder returns a decoder for frames of schema s. An error names the invalid setting.
func NewDecoder(s *schema.Schema, cfg DecoderConfig) (*Decoder, error) {
	err := errors.Join(checkCodec(&cfg.Codec), checkRPC(cfg.RPC), checkRing("Ring", &cfg.Ring), checkRing("PeerRing", &cfg.PeerRing))
	if err != nil {
		return nil, err
	}
	if cfg.Scratch == nil {
		cfg.Scratch = NewScratch(s)
	}
	if !cfg.Scratch.fits(s) {
		return nil, fmt.Errorf("rpcdelta: Scratch of frames of another shape than those of %s", s.RPC())
	}
	d := &Decoder{
		format:  packed.Of(s),
		cfg:     cfg,
		ring:    cfg.Codec.newFrames(s, cfg.capacity()),
		reach:   cfg.Codec.reach(min(cfg.Ring, cfg.PeerRing)),
		scratch: cfg.Scratch,
	}
	if d.coder = (rleCoder{packed.NewCodec(d.format)}); cfg.Codec == Adaptive {
		d.coder = newAdaptive(s, cfg.Prior, min(cfg.Ring, cfg.PeerRing), d.ring, &d.scratch.coder, cfg.DeliverLate)
	}
	return d, nil
}

// capacity returns the number of frames to keep: possible baselines, and, if late payloads are
// decoded, those that newer frames would have evicted by then.
func (c *DecoderConfig) capacity() int {
	if c.DeliverLate && c.Codec == Adaptive {
		return c.Ring + maxLate
	}
	return c.Ring
}

// Decode decodes one payload and returns the frames that it newly delivers, oldest first. The slice
// and its frames are valid until the next call, see [Scratch]. An error wraps one of the reasons
// for which payloads are dropped, such as [ErrLate]; the decoder remains usable. The payload is
// neither modified nor retained. Only errors allocate.
func (d *Decoder) Decode(payload []byte) ([]Delivery, error) {
	h, err := wire.Parse(payload)
	if err != nil {
		return nil, err
	}
	if int(h.RPC) != d.cfg.RPC {
		return nil, wire.Malformed("RPC number %d, want %d", h.RPC, d.cfg.RPC)
	}
	if !d.started {
		return d.accept(h, uint64(h.Seq), payload)
	}
	n, ok := h.Unwrap(d.newest)
	if !ok {
		return nil, ErrLate
	}
	if n <= d.newest {
		return d.decodeOld(h, n, payload)
	}
	if d.cfg.Reliable && n != d.newest+1 {
		return nil, wire.Malformed("sequence %d after %d on a reliable channel", n, d.newest)
	}
	return d.accept(h, n, payload)
}

// accept decodes a payload that is newer than all before, and delivers its new frames. Of a payload
// that resets the decoder it delivers only the newest, because the encoder does not know which of
// the others are new.
func (d *Decoder) accept(h wire.Header, n uint64, b []byte) ([]Delivery, error) {
	kind := d.kind(h)
	if kind == 0 {
		return nil, ErrLate // a frame of an older epoch
	}
	if err := d.decode(h, n, b); err != nil {
		d.requestReset(err)
		return nil, err
	}
	if kind == Reset {
		d.epoch, d.resetReason, d.first, d.known = h.Epoch, nil, n, n
		d.ring.Reset()
		d.coder.reset()
	}
	if h.Distance != 0 {
		d.known = max(d.known, d.scratch.payload.base+1)
	}
	d.ackDue = true
	q, after := d.scratch.payload.oldest(), uint64(0)
	if d.started {
		after = d.newest + 1
		q = max(q, after)
	}
	if d.explanation != nil {
		explain(d.explanation, d.format.Schema, d.coder, &d.scratch.payload)
		d.explanation = nil
	}
	if d.profiler.Profile != nil {
		d.measure(&h, len(b))
		for _, f := range d.scratch.payload.frames[q-d.scratch.payload.oldest():] {
			d.profiler.frame(f)
		}
	}
	d.scratch.out = d.scratch.out[:0]
	missed := q - after
	for ; q <= n; q++ {
		f := d.scratch.payload.frames[q-d.scratch.payload.oldest()]
		if kind != Reset || q == n {
			d.coder.pass(q)
			d.ring.Put(q, f)
		}
		d.deliver(kind, q, f).Missed = missed
		missed = 0
	}
	d.setSize(&h, len(b))
	d.mark(n)
	return d.scratch.out, nil
}

// decode decodes the payload into d.scratch.payload.
func (d *Decoder) decode(h wire.Header, n uint64, b []byte) (err error) {
	p := &d.scratch.payload
	p.newest, p.base, p.hasBase = n, n-uint64(h.Distance), h.Distance != 0
	if p.baseline, err = d.baseline(h, n); err != nil {
		return err
	}
	d.scratch.prepare()
	behind := h.Size()
	if p.free = h.FreeBits(); p.free > 0 {
		behind--
	}
	if err := d.coder.decode(p, b[behind:]); err != nil {
		return err
	}
	if older := uint64(len(p.frames) - 1); older > n || p.hasBase && older >= uint64(h.Distance) {
		return wire.Malformed("%d older frames in payload %d", older, n)
	}
	return nil
}

// decodeOld handles a payload that is not newer than all before.
func (d *Decoder) decodeOld(h wire.Header, n uint64, b []byte) ([]Delivery, error) {
	age := d.newest - n
	switch {
	case age == 0 || age <= maxLate && d.processed>>(age-1)&1 != 0:
		return nil, ErrDuplicate
	case !d.cfg.DeliverLate || age > maxLate:
		return nil, ErrLate
	}
	kind := d.kind(h)
	if kind != Delta && kind != Keyframe {
		return nil, ErrLate
	}
	if err := d.decode(h, n, b); err != nil {
		if errors.Is(err, ErrMalformed) {
			return nil, err
		}
		return nil, ErrLate // the baseline was evicted from the ring
	}
	d.scratch.out = d.scratch.out[:0]
	for i, f := range d.scratch.payload.frames {
		q := d.scratch.payload.oldest() + uint64(i)
		age := d.newest - q
		if age == 0 || age > maxLate || d.delivered>>(age-1)&1 != 0 {
			continue
		}
		d.delivered |= 1 << (age - 1)
		d.deliver(kind, q, f).Late = true
	}
	if len(d.scratch.out) == 0 {
		return nil, ErrDuplicate
	}
	if d.explanation != nil {
		explain(d.explanation, d.format.Schema, d.coder, &d.scratch.payload)
		d.explanation = nil
	}
	if d.profiler.Profile != nil {
		d.measure(&h, len(b))
		for i := range d.scratch.out {
			d.profiler.frame(d.scratch.out[i].Frame)
		}
	}
	d.setSize(&h, len(b))
	return d.scratch.out, nil
}

// kind returns the kind of a frame, or 0 if it belongs to an older epoch. The encoder is at most
// one epoch ahead.
func (d *Decoder) kind(h wire.Header) FrameKind {
	switch {
	case h.Distance != 0:
		return Delta
	case !d.started:
		return Reset
	case h.Epoch == d.epoch:
		return Keyframe
	case (h.Epoch-d.epoch)&wire.EpochMask <= wire.EpochSpan:
		return Reset
	}
	return 0
}

// baseline returns the frame that the header refers to, after verifying its hash.
func (d *Decoder) baseline(h wire.Header, n uint64) (schema.Frame, error) {
	if h.Distance == 0 {
		return schema.Frame{}, nil
	}
	if !d.started || uint64(h.Distance) > min(n, d.reach) {
		return schema.Frame{}, ErrBaselineMissing
	}
	seq := n - uint64(h.Distance)
	row, ok := d.ring.Get(seq)
	if !ok || !d.coder.learn(seq) {
		return schema.Frame{}, ErrBaselineMissing
	}
	base := schema.Frame(row)
	if h.Checked && hashFrame(&base)^d.coder.hash() != h.Hash {
		return schema.Frame{}, ErrDesync
	}
	return base, nil
}

// requestReset makes the next acks request a reset if err requires one. After a desync, no frame
// remains a baseline, because those coded against the wrong one are wrong too.
func (d *Decoder) requestReset(err error) {
	switch {
	case errors.Is(err, ErrDesync):
		d.resetReason = ErrDesync
		d.ring.Reset()
	case !errors.Is(err, ErrBaselineMissing):
		return
	case d.resetReason == nil:
		d.resetReason = ErrBaselineMissing
	}
	d.ackDue = true
}

// mark sets the newest payload to n and marks the frames in d.scratch.out as delivered.
func (d *Decoder) mark(n uint64) {
	if d.started {
		step := n - d.newest
		d.processed = d.processed<<step | 1<<(step-1)
		d.delivered = d.delivered<<step | 1<<(step-1)
	}
	d.newest, d.started = n, true
	for i := range d.scratch.out {
		if age := n - d.scratch.out[i].Seq; age > 0 {
			d.delivered |= 1 << (age - 1)
		}
	}
}

// deliver appends frame n of the payload to d.scratch.out.
func (d *Decoder) deliver(kind FrameKind, n uint64, f *schema.Frame) *Delivery {
	x := d.scratch
	x.out = append(x.out, Delivery{})
	out := &x.out[len(x.out)-1]
	out.Seq, out.Kind, out.FullBits, out.Frame = n, kind, d.format.FullBits(f), f
	switch {
	case kind == Delta:
		out.BaselineAge = int(n - x.payload.base)
	case kind == Reset && n != x.payload.newest:
		out.Kind = Keyframe // only the newest frame resets the decoder
	}
	return out
}

// setSize sets the sizes of the payload in the newest frame of d.scratch.out.
func (d *Decoder) setSize(h *wire.Header, size int) {
	i := &d.scratch.out[len(d.scratch.out)-1].Info
	i.HeaderBits, i.Redundant = d.cfg.Codec.headerBits(h), len(d.scratch.payload.frames)-1
	i.PayloadBits = 8*size - i.HeaderBits
}

// Explain replaces e with an explanation of the next payload that is decoded; payloads that are
// dropped do not count. nil cancels it. Explaining a payload allocates.
func (d *Decoder) Explain(e *inspect.Explanation) { d.explanation = e }

// Measure adds each payload that is decoded from now on to p; nil stops it. Dropped payloads are
// not added. It codes each payload a second time, and does not allocate once warm. If another
// encoder did not choose the smallest coding, the excess counts as RoundingBits. Measure panics if
// p is of another schema.
func (d *Decoder) Measure(p *inspect.Profile) {
	d.profiler = newProfiler(p, d.format)
}

// measure adds the payload that was just decoded to the profile. It must be called before the coder
// learns from the frames.
func (d *Decoder) measure(h *wire.Header, size int) {
	n := d.cfg.Codec.headerBits(h)
	d.profiler.payload(d.coder, &d.scratch.payload, n, 8*size-n)
}

// AckDue reports whether the encoder needs an ack because of what happened since the last
// AppendAck. It is always false on a reliable channel.
func (d *Decoder) AckDue() bool { return d.ackDue && !d.cfg.Reliable }

// AskReset makes the next acks request a reset, as if a baseline were missing. Payloads after the
// reset can be decoded without those before it. It has no effect before the first payload and on a
// reliable channel.
func (d *Decoder) AskReset() {
	if d.started && !d.cfg.Reliable {
		d.requestReset(ErrBaselineMissing)
	}
}

// AppendAck appends an ack of the payloads processed so far, typically 4 bytes. Acks may be lost,
// repeated and reordered.
func (d *Decoder) AppendAck(dst []byte) []byte {
	d.ackDue = false
	a := Ack{RPC: uint8(d.cfg.RPC), ResetReason: d.resetReason, None: !d.started}
	if d.started {
		// The encoder used frame known-1 as a baseline, or known is the first of the epoch, so it
		// needs the status of the payloads since.
		need := d.newest - min(max(d.known, d.first), d.newest)
		a.Epoch, a.Seq, a.Whole = d.epoch, uint16(d.newest), need <= ackWindow && d.known <= d.first
		a.Len = int(min(need, ackWindow))
		a.Window = d.processed & windowMask(a.Len)
	}
	return a.Append(dst)
}
