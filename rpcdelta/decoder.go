package rpcdelta

import (
	"errors"

	"github.com/uplink-rpc/uplink/ringcache"
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
	// Reliable says that payloads arrive in order, every one.
	Reliable bool
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
	// Frame is valid until the next call of Decode.
	Frame *Frame
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
	schema  *Schema
	cfg     DecoderConfig
	coder   coder
	ring    *ringcache.Ring[Frame] // frames that were taken in this epoch
	reach   uint64                 // how old a frame may be that another needs
	payload payload                // being decoded
	room    []*Frame               // for payload.frames
	at      uint64                 // the frame that is being decoded or learned from
	out     []Delivery

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
func NewDecoder(s *Schema, cfg DecoderConfig) (*Decoder, error) {
	err := errors.Join(checkCodec(&cfg.Codec), checkRPC(cfg.RPC), checkRing("Ring", &cfg.Ring), checkRing("PeerRing", &cfg.PeerRing))
	if err != nil {
		return nil, err
	}
	d := &Decoder{
		schema: s,
		cfg:    cfg,
		ring:   newRing(s, cfg.capacity()),
		reach:  cfg.Codec.reach(min(cfg.Ring, cfg.PeerRing)),
		out:    make([]Delivery, 0, MaxRedundancy+1),
	}
	d.coder = newCoder(cfg.Codec, s, min(cfg.Ring, cfg.PeerRing), d.taken)
	most := 1
	if cfg.Codec == Adaptive {
		most += MaxRedundancy
	}
	frames := s.newFrames(most)
	for i := range frames {
		d.room = append(d.room, &frames[i])
	}
	return d, nil
}

// capacity is how many frames are kept: all that one payload delivers, and where
// late ones are decoded those that newer ones would have evicted by then.
func (c *DecoderConfig) capacity() int {
	switch {
	case c.Codec == RLE:
		return c.Ring
	case c.DeliverLate:
		return c.Ring + maxLate
	}
	return max(c.Ring, MaxRedundancy+1)
}

// newRing makes a ring of frames whose components lie in one array.
func newRing(s *Schema, capacity int) *ringcache.Ring[Frame] {
	frames := s.newFrames(capacity)
	return ringcache.NewFunc(capacity, func(f *Frame) {
		*f, frames = frames[0], frames[1:]
	})
}

// taken gives a frame that was taken and that the encoder has too where it codes
// or learns from d.at.
func (d *Decoder) taken(seq uint64) *Frame {
	if d.at-seq > d.reach {
		return nil
	}
	return d.ring.Get(seq)
}

// Decode takes one payload and gives the frames that it newly delivers, oldest
// first. The slice and its frames are valid until the next call. An error is
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
		d.known = max(d.known, d.payload.base+1)
	}
	d.ackDue = true
	q, after := d.payload.oldest(), uint64(0)
	if d.started {
		after = d.newest + 1
		q = max(q, after)
	}
	d.out = d.out[:0]
	missed := q - after
	for ; q <= n; q++ {
		f := d.payload.frames[q-d.payload.oldest()]
		if kind != Reset || q == n {
			slot := d.ring.Put(q)
			*slot, *f = *f, *slot
			f, d.at = slot, q
			d.coder.take(q)
		}
		d.out = append(d.out, Delivery{Info: d.info(kind, q, f), Missed: missed, Frame: f})
		missed = 0
	}
	d.sized(&h, len(b))
	d.mark(n)
	return d.out, nil
}

// decode fills d.payload.
func (d *Decoder) decode(h header, n uint64, b []byte) (err error) {
	p := &d.payload
	p.newest, p.base, d.at = n, n-uint64(h.distance), n
	if p.baseline, err = d.baseline(h, n); err != nil {
		return err
	}
	p.frames = append(p.frames[:0], d.room...)
	behind := h.size()
	if p.free = h.free(); p.free > 0 {
		behind--
	}
	if err := d.coder.decode(p, b[behind:]); err != nil {
		return err
	}
	if older := uint64(len(p.frames) - 1); older > n || p.baseline != nil && older >= uint64(h.distance) {
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
	d.out = d.out[:0]
	for i, f := range d.payload.frames {
		q := d.payload.oldest() + uint64(i)
		age := d.newest - q
		if age == 0 || age > maxLate || d.delivered>>(age-1)&1 != 0 {
			continue
		}
		d.delivered |= 1 << (age - 1)
		d.out = append(d.out, Delivery{Info: d.info(kind, q, f), Late: true, Frame: f})
	}
	if len(d.out) == 0 {
		return nil, ErrDuplicate
	}
	d.sized(&h, len(b))
	return d.out, nil
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

// baseline gives the frame that the header names, checked, or nil if it names
// none.
func (d *Decoder) baseline(h header, n uint64) (*Frame, error) {
	if h.distance == 0 {
		return nil, nil
	}
	if !d.started || uint64(h.distance) > n {
		return nil, ErrBaselineMissing
	}
	seq := n - uint64(h.distance)
	base := d.taken(seq)
	if base == nil || !d.coder.covers(seq) {
		return nil, ErrBaselineMissing
	}
	if h.checked && base.hash()^d.coder.hash(seq) != h.hash {
		return nil, ErrDesync
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

// mark makes n the newest payload, of which the frames in d.out are delivered.
func (d *Decoder) mark(n uint64) {
	if d.started {
		step := n - d.newest
		d.processed = d.processed<<step | 1<<(step-1)
		d.delivered = d.delivered<<step | 1<<(step-1)
	}
	d.newest, d.started = n, true
	for i := range d.out {
		if age := n - d.out[i].Seq; age > 0 {
			d.delivered |= 1 << (age - 1)
		}
	}
}

// info describes frame n of the payload.
func (d *Decoder) info(kind FrameKind, n uint64, f *Frame) Info {
	i := Info{Seq: n, Kind: kind, FullBits: d.schema.FullBits(f)}
	switch {
	case kind == Delta:
		i.BaselineAge = int(n - d.payload.base)
	case kind == Reset && n != d.payload.newest:
		i.Kind = Intra // the newest alone starts the decoder anew
	}
	return i
}

// sized notes in the newest of the frames in d.out what the payload took.
func (d *Decoder) sized(h *header, size int) {
	i := &d.out[len(d.out)-1].Info
	i.HeaderBits, i.Older = d.cfg.Codec.headerBits(h), len(d.payload.frames)-1
	i.PayloadBits = 8*size - i.HeaderBits
}

// AckDue says whether something happened since the last AppendAck that the
// encoder should know. Reliable decoders need no acks.
func (d *Decoder) AckDue() bool { return d.ackDue && !d.cfg.Reliable }

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
