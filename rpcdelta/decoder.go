package rpcdelta

import (
	"errors"
	"fmt"

	"github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"
	"github.com/uplink-rpc/uplink/schema"
)

// DecoderConfig says how a Decoder works. Zero fields mean the defaults.
type DecoderConfig struct {
	// Codec must be the encoder's; default [DefaultCodec].
	Codec Codec
	// RPC is the number in headers and acks, as the encoder has it.
	RPC int
	// Ring is how many frames are kept, 2 to MaxRing; default DefaultRing. Tell
	// the encoder, as its PeerRing.
	Ring int
	// PeerRing is the encoder's Ring; default DefaultRing.
	PeerRing int
	// DeliverLate has frames of payloads that were overtaken delivered, marked,
	// instead of dropped. They are never baselines.
	DeliverLate bool
	// Prior is the encoder's; nil is the built-in one.
	Prior *Prior
	// Reliable says that payloads arrive in order, every one.
	Reliable bool
	// Scratch, if not nil, is shared with other decoders, see [Scratch].
	Scratch *Scratch
}

// maxLate is how many newer payloads may overtake one that is still delivered.
const maxLate = 64

// Delivery is a frame as the decoder rebuilt it.
type Delivery struct {
	Info
	// Missed is how many frames before this one were not delivered, since the one
	// delivered before it.
	Missed uint64
	// Late says that newer frames were delivered before.
	Late bool
	// Frame is valid until the next call of Decode, see [Scratch].
	Frame *schema.Frame
}

// Decoder rebuilds frames from payloads, whatever the network lost. It takes
// any bytes: what it cannot use it reports and forgets. Not safe for concurrent
// use.
//
// Whoever carries payloads must drop one that arrives after another whose newest
// frame is 64 or more newer, since short headers hold 7 bits of the sequence: after
// 64 newer payloads, or where frames are held back ([Encoder.Hold]), so that a
// payload brings up to k new ones, after 64/k. A decoder that takes the
// place of another must not get what was sent to that one. Package transport sees
// to both.
type Decoder struct {
	format      *format
	cfg         DecoderConfig
	coder       coder
	ring        *adaptive.Frames // that were taken in this epoch
	reach       uint64           // how old a frame may be that another needs
	scratch     *Scratch
	profile     *Profile     // or nil
	explanation *Explanation // likewise

	started   bool // something was taken; newest and what follows mean something
	newest    uint64
	processed uint64 // bit i: payload newest-1-i was processed
	delivered uint64 // bit i: frame newest-1-i was delivered
	epoch     uint8
	first     uint64 // first payload processed in this epoch
	known     uint64 // everything below is known to the encoder
	trouble   Trouble
	ackDue    bool
}

// NewDecoder makes a decoder of the schema's frames. An error names the setting
// that is wrong.
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
		format:  formatOf(s),
		cfg:     cfg,
		ring:    cfg.Codec.newFrames(s, cfg.capacity()),
		reach:   cfg.Codec.reach(min(cfg.Ring, cfg.PeerRing)),
		scratch: cfg.Scratch,
	}
	if d.coder = newRLE(d.format); cfg.Codec == Adaptive {
		d.coder = newAdaptive(d.format, cfg.Prior, min(cfg.Ring, cfg.PeerRing), d.ring, &d.scratch.coder, cfg.DeliverLate)
	}
	return d, nil
}

// capacity is how many frames may be baselines, and where late payloads are
// decoded those that newer frames would have evicted by then.
func (c *DecoderConfig) capacity() int {
	if c.DeliverLate && c.Codec == Adaptive {
		return c.Ring + maxLate
	}
	return c.Ring
}

// Decode takes one payload and gives the frames that it newly delivers, oldest
// first. The slice and its frames are valid until the next call, see [Scratch]. An error is
// one of the package's reasons for which payloads are dropped, perhaps wrapped;
// the decoder goes on. The payload is not written to nor kept. It allocates
// nothing but for errors.
func (d *Decoder) Decode(payload []byte) ([]Delivery, error) {
	h, err := parseHeader(payload)
	if err != nil {
		return nil, err
	}
	if int(h.rpc) != d.cfg.RPC {
		return nil, malformed("RPC number %d, want %d", h.rpc, d.cfg.RPC)
	}
	if !d.started {
		return d.take(h, uint64(h.seq), payload)
	}
	n, ok := h.unwrap(d.newest)
	if !ok {
		return nil, ErrLate
	}
	if n <= d.newest {
		return d.decodeOld(h, n, payload)
	}
	if d.cfg.Reliable && n != d.newest+1 {
		return nil, malformed("sequence %d after %d on a reliable channel", n, d.newest)
	}
	return d.take(h, n, payload)
}

// take decodes a payload that is newer than all before it, and takes from it
// the frames that are. Of one that resets it takes the newest alone: the encoder
// does not know which of the others were new.
func (d *Decoder) take(h header, n uint64, b []byte) ([]Delivery, error) {
	kind := d.kind(h)
	if kind == 0 {
		return nil, ErrLate // a frame of an epoch that is over
	}
	if err := d.decode(h, n, b); err != nil {
		d.ask(err)
		return nil, err
	}
	if kind == Reset {
		d.epoch, d.trouble, d.first, d.known = h.epoch, NoTrouble, n, n
		d.ring.Reset()
		d.coder.reset()
	}
	if h.distance != 0 {
		d.known = max(d.known, d.scratch.payload.base+1)
	}
	d.ackDue = true
	q, after := d.scratch.payload.oldest(), uint64(0)
	if d.started {
		after = d.newest + 1
		q = max(q, after)
	}
	if d.explanation != nil {
		d.explain()
	}
	if d.profile != nil {
		d.measure(&h, len(b))
		for _, f := range d.scratch.payload.frames[q-d.scratch.payload.oldest():] {
			d.profile.frame(d.format, f)
		}
	}
	d.scratch.out = d.scratch.out[:0]
	missed := q - after
	for ; q <= n; q++ {
		f := d.scratch.payload.frames[q-d.scratch.payload.oldest()]
		if kind != Reset || q == n {
			d.coder.pass(q)
			d.ring.Put(q, (*adaptive.Row)(f))
		}
		d.deliver(kind, q, f).Missed = missed
		missed = 0
	}
	d.sized(&h, len(b))
	d.mark(n)
	return d.scratch.out, nil
}

// decode fills d.scratch.payload.
func (d *Decoder) decode(h header, n uint64, b []byte) (err error) {
	p := &d.scratch.payload
	p.newest, p.base, p.hasBase = n, n-uint64(h.distance), h.distance != 0
	if p.baseline, err = d.baseline(h, n); err != nil {
		return err
	}
	d.scratch.prepare()
	behind := h.size()
	if p.free = h.free(); p.free > 0 {
		behind--
	}
	if err := d.coder.decode(p, b[behind:]); err != nil {
		return err
	}
	if older := uint64(len(p.frames) - 1); older > n || p.hasBase && older >= uint64(h.distance) {
		return malformed("%d older frames in payload %d", older, n)
	}
	return nil
}

// decodeOld deals with a payload that a newer one, or itself, came before.
func (d *Decoder) decodeOld(h header, n uint64, b []byte) ([]Delivery, error) {
	age := d.newest - n
	switch {
	case age == 0 || age <= maxLate && d.processed>>(age-1)&1 != 0:
		return nil, ErrDuplicate
	case !d.cfg.DeliverLate || age > maxLate:
		return nil, ErrLate
	}
	kind := d.kind(h)
	if kind != Delta && kind != Intra {
		return nil, ErrLate
	}
	if err := d.decode(h, n, b); err != nil {
		if errors.Is(err, ErrMalformed) {
			return nil, err
		}
		return nil, ErrLate // nothing is wrong: the ring has gone on
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
		d.explain()
	}
	if d.profile != nil {
		d.measure(&h, len(b))
		for i := range d.scratch.out {
			d.profile.frame(d.format, d.scratch.out[i].Frame)
		}
	}
	d.sized(&h, len(b))
	return d.scratch.out, nil
}

// kind tells a frame that goes on from one that resets; 0 is a frame of an
// older epoch. The encoder is at most one epoch ahead.
func (d *Decoder) kind(h header) FrameKind {
	switch {
	case h.distance != 0:
		return Delta
	case !d.started:
		return Reset
	case h.epoch == d.epoch:
		return Intra
	case (h.epoch-d.epoch)&epochMask <= epochSpan:
		return Reset
	}
	return 0
}

// baseline gives the frame that the header names, checked, if it names one.
func (d *Decoder) baseline(h header, n uint64) (schema.Frame, error) {
	if h.distance == 0 {
		return schema.Frame{}, nil
	}
	if !d.started || uint64(h.distance) > min(n, d.reach) {
		return schema.Frame{}, ErrBaselineMissing
	}
	seq := n - uint64(h.distance)
	row, ok := d.ring.Get(seq)
	if !ok || !d.coder.learn(seq) {
		return schema.Frame{}, ErrBaselineMissing
	}
	base := schema.Frame(row)
	if h.checked && hashFrame(&base)^d.coder.hash() != h.hash {
		return schema.Frame{}, ErrDesync
	}
	return base, nil
}

// ask has the next acks ask for a reset, if that is what the error calls for.
// After a desync no frame is a baseline any more: those coded from the wrong one
// are wrong too.
func (d *Decoder) ask(err error) {
	switch {
	case errors.Is(err, ErrDesync):
		d.trouble = Desync
		d.ring.Reset()
	case !errors.Is(err, ErrBaselineMissing):
		return
	case d.trouble == NoTrouble:
		d.trouble = MissingBaseline
	}
	d.ackDue = true
}

// mark makes n the newest payload, of which the frames in d.scratch.out are delivered.
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

// deliver adds frame n of the payload to those delivered.
func (d *Decoder) deliver(kind FrameKind, n uint64, f *schema.Frame) *Delivery {
	x := d.scratch
	x.out = append(x.out, Delivery{})
	out := &x.out[len(x.out)-1]
	out.Seq, out.Kind, out.FullBits, out.Frame = n, kind, d.format.fullBits(f), f
	switch {
	case kind == Delta:
		out.BaselineAge = int(n - x.payload.base)
	case kind == Reset && n != x.payload.newest:
		out.Kind = Intra // the newest alone starts the decoder anew
	}
	return out
}

// sized notes in the newest of the frames in d.scratch.out what the payload took.
func (d *Decoder) sized(h *header, size int) {
	i := &d.scratch.out[len(d.scratch.out)-1].Info
	i.HeaderBits, i.Older = d.cfg.Codec.headerBits(h), len(d.scratch.payload.frames)-1
	i.PayloadBits = 8*size - i.HeaderBits
}

// Measure has each payload that is taken from now on added to p, and none that is
// dropped; nil stops it. It codes each once more, and allocates nothing once warm. What an
// encoder other than this package's could have coded in fewer bits counts among
// RoundingBits. It panics if p is of another schema.
func (d *Decoder) Measure(p *Profile) {
	p.mustFit(d.format)
	d.profile = p
}

// measure measures the payload that was just decoded; nothing may have been learned
// since.
func (d *Decoder) measure(h *header, size int) {
	n := d.cfg.Codec.headerBits(h)
	d.profile.payload(d.coder, &d.scratch.payload, n, 8*size-n)
}

// AckDue says whether something happened since the last AppendAck that the
// encoder should know. Reliable decoders need no acks.
func (d *Decoder) AckDue() bool { return d.ackDue && !d.cfg.Reliable }

// AskReset has the next acks ask the encoder for a reset, as they do when a baseline is missing: from then on payloads
// can be decoded without what came before them. It does nothing where nothing came yet, nor on a reliable channel, which
// knows no acks.
func (d *Decoder) AskReset() {
	if d.started && !d.cfg.Reliable {
		d.ask(ErrBaselineMissing)
	}
}

// AppendAck appends what the decoder processed so far, typically 4 bytes, to
// be sent to the encoder in whatever goes there. It may be lost or repeated.
func (d *Decoder) AppendAck(dst []byte) []byte {
	d.ackDue = false
	a := Ack{RPC: uint8(d.cfg.RPC), Trouble: d.trouble, None: !d.started}
	if d.started {
		// The encoder has used frame known-1 as a baseline, or known opens the
		// epoch: it needs what came since.
		need := d.newest - min(max(d.known, d.first), d.newest)
		a.Epoch, a.Seq, a.Whole = d.epoch, uint16(d.newest), need <= AckWindow && d.known <= d.first
		a.Len = int(min(need, AckWindow))
		a.Window = d.processed & windowMask(a.Len)
	}
	return a.Append(dst)
}
