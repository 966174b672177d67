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
	// DeliverLate has frames of payloads that were overtaken delivered, marked,
	// instead of dropped. They are never baselines.
	DeliverLate bool
	// Reliable says that payloads arrive in order, every one.
	Reliable bool
}

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
// Whoever carries payloads must drop one that was sent 64 or more payloads before
// the newest that arrived, since short headers hold 7 bits of the sequence.
// Package transport does.
type Decoder struct {
	schema *Schema
	cfg    DecoderConfig
	codec  *rleCodec
	taken  *ringcache.Ring[Frame]
	frame  *Frame // being decoded
	out    [1]Delivery

	started   bool // something was taken; newest and what follows mean something
	newest    uint64
	processed uint64 // bit i: payload newest-1-i was processed
	late      uint64 // bit i: payload newest-1-i was delivered late
	epoch     uint8
	first     uint64 // first payload processed in this epoch
	known     uint64 // everything below is known to the encoder
	trouble   Trouble
	ackDue    bool
}

// NewDecoder makes a decoder of the schema's frames. An error names the setting
// that is wrong.
func NewDecoder(s *Schema, cfg DecoderConfig) (*Decoder, error) {
	if err := errors.Join(checkCodec(&cfg.Codec), checkRPC(cfg.RPC), checkRing("Ring", &cfg.Ring)); err != nil {
		return nil, err
	}
	return &Decoder{schema: s, cfg: cfg, codec: newRLE(s), taken: newRing(s, cfg.Ring), frame: s.NewFrame()}, nil
}

// Decode takes one payload and gives the frames that it newly delivers, oldest
// first. The slice and its frames are valid until the next call. An error is
// one of the package's reasons for which payloads are dropped, perhaps wrapped;
// the decoder goes on. The payload is not written to nor kept. It allocates
// nothing but for errors.
func (d *Decoder) Decode(payload []byte) ([]Delivery, error) {
	h, coded, err := parseHeader(payload)
	if err != nil {
		return nil, err
	}
	if int(h.rpc) != d.cfg.RPC {
		return nil, malformed("RPC number %d, want %d", h.rpc, d.cfg.RPC)
	}
	if !d.started {
		return d.take(h, uint64(h.seq), coded)
	}
	n, ok := h.unwrap(d.newest)
	if !ok {
		return nil, ErrLate
	}
	if n <= d.newest {
		return d.decodeOld(h, n, coded)
	}
	if d.cfg.Reliable && n != d.newest+1 {
		return nil, malformed("sequence %d after %d on a reliable channel", n, d.newest)
	}
	return d.take(h, n, coded)
}

// take decodes a payload that is newer than all before it.
func (d *Decoder) take(h header, n uint64, coded []byte) ([]Delivery, error) {
	kind := d.kind(h)
	if kind == 0 {
		return nil, ErrLate // a frame of an epoch that is over
	}
	base, err := d.baseline(h, n)
	if err != nil {
		d.ask(err)
		return nil, err
	}
	if err := d.codec.decode(d.frame, base, coded); err != nil {
		return nil, err
	}
	if kind == Reset {
		d.epoch, d.trouble, d.first, d.known = h.epoch, NoTrouble, n, n
	}
	if h.distance != 0 {
		d.known = max(d.known, n-uint64(h.distance)+1)
	}
	missed := n
	if d.started {
		missed = n - d.newest - 1
	}
	d.mark(n)
	d.ackDue = true
	slot := d.taken.Put(n)
	*slot, *d.frame = *d.frame, *slot
	return d.deliver(Delivery{Info: d.info(h, kind, n, len(coded), slot), Missed: missed, Frame: slot}), nil
}

// decodeOld deals with a payload that a newer one, or itself, came before.
func (d *Decoder) decodeOld(h header, n uint64, coded []byte) ([]Delivery, error) {
	age := d.newest - n
	switch {
	case age == 0 || age <= 64 && (d.processed|d.late)>>(age-1)&1 != 0:
		return nil, ErrDuplicate
	case !d.cfg.DeliverLate || age > 64:
		return nil, ErrLate
	}
	kind := d.kind(h)
	if kind != Delta && kind != Intra {
		return nil, ErrLate
	}
	base, err := d.baseline(h, n)
	if err != nil {
		return nil, ErrLate // nothing is wrong: the ring has gone on
	}
	if err := d.codec.decode(d.frame, base, coded); err != nil {
		return nil, err
	}
	d.late |= 1 << (age - 1)
	return d.deliver(Delivery{Info: d.info(h, kind, n, len(coded), d.frame), Late: true, Frame: d.frame}), nil
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
	base := d.taken.Get(n - uint64(h.distance))
	if base == nil {
		return nil, ErrBaselineMissing
	}
	if h.checked && base.hash() != h.hash {
		return nil, ErrDesync
	}
	return base, nil
}

// ask has the next acks ask for a reset. After a desync no frame is a baseline
// any more: those coded from the wrong one are wrong too.
func (d *Decoder) ask(err error) {
	d.ackDue = true
	if errors.Is(err, ErrDesync) {
		d.trouble = Desync
		d.taken.Reset()
	} else if d.trouble == NoTrouble {
		d.trouble = MissingBaseline
	}
}

// mark makes n the newest payload.
func (d *Decoder) mark(n uint64) {
	if d.started {
		step := n - d.newest
		d.processed = d.processed<<step | 1<<(step-1)
		d.late <<= step
	}
	d.newest, d.started = n, true
}

func (d *Decoder) info(h header, kind FrameKind, n uint64, size int, f *Frame) Info {
	return Info{Seq: n, Kind: kind, BaselineAge: h.distance, FullBits: d.schema.FullBits(f), HeaderBits: 8 * h.size(), PayloadBits: 8 * size}
}

func (d *Decoder) deliver(v Delivery) []Delivery {
	d.out[0] = v
	return d.out[:]
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
