package rpcdelta

import (
	"errors"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/adaptive"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/inspect"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/packed"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/wire"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/seq"
)

// maxLate is the maximum number of newer payloads that may arrive before a payload that is still
// delivered.
const maxLate = seq.WindowSize

// Delivery is a decoded frame.
type Delivery struct {
	Info
	// Missed is the number of undelivered frames between this one and the one delivered before it.
	Missed uint64
	// Late reports that newer frames were delivered before.
	Late bool
	// Recovered reports that the frame is a redundant copy: an earlier datagram that contained it
	// did not arrive. The decoder does not set it, since it sees no datagrams.
	Recovered bool
	// Frame is valid until the next call of Decode, see [Scratch].
	Frame *schema.Frame
}

// Scratch is the memory that a decoder needs only while it decodes, about 2 KiB. Decoders may share
// one Scratch if they are not used concurrently, for example the decoders of all players of a
// server, also if their frames have different schemas. The result of Decode is then valid until the
// next call on any of them, or of NewDecoder.
type Scratch struct {
	coder   adaptive.Coder
	payload payload // being decoded
	frames  [MaxFrames]*schema.Frame
	out     []Delivery
}

// NewScratch returns scratch memory for frames of schema s. It grows if a decoder has larger
// frames.
func NewScratch(s *schema.Schema) *Scratch {
	x := &Scratch{out: make([]Delivery, 0, MaxFrames)}
	frames := s.NewFrames(len(x.frames))
	for i := range frames {
		x.frames[i] = &frames[i]
	}
	return x
}

// fit makes room for frames of schema s.
func (x *Scratch) fit(s *schema.Schema) {
	ints, strs := max(s.Components(), cap(x.frames[0].Ints)), max(s.Strings(), cap(x.frames[0].Bytes))
	if ints == cap(x.frames[0].Ints) && strs == cap(x.frames[0].Bytes) {
		return
	}
	allInts, allStrings := make([]int32, len(x.frames)*ints), make([][]byte, len(x.frames)*strs)
	for i, f := range x.frames {
		f.Ints = allInts[i*ints : (i+1)*ints : (i+1)*ints]
		f.Bytes = allStrings[i*strs : (i+1)*strs : (i+1)*strs]
	}
}

// shape sets the numbers of components and byte strings of the frames. The memory must suffice.
func (x *Scratch) shape(ints, strs int) {
	if f := x.frames[0]; len(f.Ints) == ints && len(f.Bytes) == strs {
		return
	}
	for _, f := range x.frames {
		f.Ints, f.Bytes = f.Ints[:ints], f.Bytes[:strs]
	}
}

// Decoder decodes payloads to frames. Payloads may be lost, duplicated, reordered or forged; the
// decoder reports those that it drops. Not safe for concurrent use.
//
// The caller must drop a payload if another payload arrived earlier whose newest frame is 64 or
// more frames newer. The reason is that short headers contain only 7 bits of the sequence. Without
// held frames, the limit is 64 newer payloads. If each payload contains up to k new frames
// ([Encoder.Hold]), it is 64/k newer payloads. A decoder that replaces another must not receive
// payloads that were sent to its predecessor. Package transport ensures both.
type Decoder struct {
	format      *packed.Format
	cfg         DecoderConfig
	coder       coder
	ring        *adaptive.Frames // frames accepted in this epoch
	reach       uint64           // maximum distance from a frame to its reference
	scratch     *Scratch
	ints, strs  int // numbers of components and byte strings of a frame
	profiler    profiler
	explanation *inspect.Explanation // or nil

	processed   seq.Window // window of payloads; empty before the first one was accepted
	delivered   seq.Window // window of frames
	epoch       uint8
	first       uint64 // first payload processed in this epoch
	known       uint64 // the encoder knows the status of all payloads below this one
	resetReason error  // reason for the reset that the next acks request, or nil
	ackDue      bool
	ackRate     ackRate
	decoded     int // result of Decoded
}

// NewDecoder returns a decoder for frames of schema s. An error names the invalid setting.
func NewDecoder(s *schema.Schema, cfg DecoderConfig) (*Decoder, error) {
	if err := checkShared(&cfg.Codec, cfg.RPC, &cfg.Ring, &cfg.PeerRing); err != nil {
		return nil, err
	}
	if cfg.Scratch == nil {
		cfg.Scratch = NewScratch(s)
	}
	cfg.Scratch.fit(s)
	// The ring holds possible baselines. If late payloads are decoded, it also holds baselines that
	// newer frames would have evicted before the payloads arrive.
	capacity := cfg.Ring
	if cfg.DeliverLate && cfg.Codec == Adaptive {
		capacity += maxLate
	}
	ring := min(cfg.Ring, cfg.PeerRing)
	d := &Decoder{
		format: packed.Of(s), cfg: cfg, scratch: cfg.Scratch, ints: s.Components(), strs: s.Strings(),
		ring: cfg.Codec.newFrames(s, capacity), reach: cfg.Codec.reach(ring),
	}
	d.coder = newCoder(s, cfg.Codec, cfg.Prior, ring, d.ring, &d.scratch.coder, cfg.checkpoints())
	return d, nil
}

// Decode decodes one payload and returns the frames that it newly delivers, oldest first. The slice
// and its frames are valid until the next call, see [Scratch]. An error wraps one of the reasons
// for which payloads are dropped, such as [ErrLate]; the decoder remains usable. The payload is
// neither modified nor retained. Only errors allocate.
func (d *Decoder) Decode(payload []byte) ([]Delivery, error) {
	d.decoded = 0
	h, err := wire.Parse(payload)
	if err != nil {
		return nil, err
	}
	if int(h.RPC) != d.cfg.RPC {
		return nil, wire.Malformed("RPC number %d, want %d", h.RPC, d.cfg.RPC)
	}
	if !d.processed.Any {
		return d.accept(h, uint64(h.Seq), payload)
	}
	newest := d.processed.Newest
	n, ok := h.Unwrap(newest)
	if !ok {
		return nil, ErrLate
	}
	if n <= newest {
		return d.decodeOld(h, n, payload)
	}
	if d.cfg.Reliable && n != newest+1 {
		return nil, wire.Malformed("sequence %d after %d on a reliable channel", n, newest)
	}
	return d.accept(h, n, payload)
}

// Decoded returns the number of frames that the last call of Decode decoded, delivered or not: at
// most MaxFrames, and 0 if it dropped the payload because of its header. A payload that is
// malformed counts as one of MaxFrames.
func (d *Decoder) Decoded() int { return d.decoded }

// accept decodes a payload that is newer than all before, and delivers its new frames. If the
// payload resets the decoder, only its newest frame becomes a baseline, because the encoder does
// not know which of the others were new to the decoder.
func (d *Decoder) accept(h wire.Header, n uint64, b []byte) ([]Delivery, error) {
	kind := d.kind(h)
	if kind == 0 {
		return nil, ErrLate // a frame of an older epoch
	}
	if err := d.decode(h, n, b); err != nil {
		d.requestReset(err)
		return nil, err
	}
	p := &d.scratch.payload
	if kind == Reset {
		d.epoch, d.resetReason, d.first, d.known = h.Epoch, nil, n, n
		d.ring.Reset()
		d.coder.reset()
	}
	if p.HasBase {
		d.known = max(d.known, p.Base+1)
	}
	d.ackDue = true
	q, after := p.oldest(), uint64(0)
	if d.processed.Any {
		after = d.processed.Newest + 1
		q = max(q, after)
	}
	missed := q - after
	d.ackRate.contiguous(p.oldest() == after)
	for ; q <= n; q++ {
		d.deliver(kind, q).Missed = missed
		missed = 0
	}
	d.finish(&h, len(b))
	d.processed.Add(n)
	if !p.Repeats { // no payload has the sequence of an older frame
		for q := max(p.oldest(), after); q < n; q++ {
			d.processed.Add(q)
		}
	}
	d.delivered.Add(n)
	for i := range d.scratch.out {
		f := &d.scratch.out[i]
		d.delivered.Add(f.Seq)
		if kind != Reset || f.Seq == n {
			d.coder.pass(f.Seq)
			var shape adaptive.Shape
			if f.Seq == n {
				shape = p.Shape()
			}
			d.ring.Put(f.Seq, f.Frame, shape)
		}
	}
	return d.scratch.out, nil
}

// decodeOld decodes a payload that is not newer than all before.
func (d *Decoder) decodeOld(h wire.Header, n uint64, b []byte) ([]Delivery, error) {
	if d.processed.Has(n) {
		return nil, ErrDuplicate
	}
	newest, kind := d.processed.Newest, d.kind(h)
	if !d.cfg.DeliverLate && d.cfg.RepairTime == 0 || newest-n > maxLate || kind != Delta && kind != Keyframe {
		return nil, ErrLate
	}
	if err := d.decode(h, n, b); err != nil {
		if errors.Is(err, ErrMalformed) {
			return nil, err
		}
		return nil, ErrLate // the baseline was evicted from the ring
	}
	for q := d.scratch.payload.oldest(); q <= n; q++ {
		if newest-q <= maxLate && !d.delivered.Has(q) {
			d.delivered.Add(q)
			d.deliver(kind, q).Late = true
		}
	}
	if len(d.scratch.out) == 0 {
		return nil, ErrDuplicate
	}
	d.finish(&h, len(b))
	return d.scratch.out, nil
}

// kind returns the kind of a frame, or 0 if it belongs to an older epoch. The encoder is at most
// one epoch ahead.
func (d *Decoder) kind(h wire.Header) FrameKind {
	switch {
	case h.Distance != 0:
		return Delta
	case !d.processed.Any:
		return Reset
	case h.Epoch == d.epoch:
		return Keyframe
	case (h.Epoch-d.epoch)&wire.EpochMask <= wire.EpochSpan:
		return Reset
	}
	return 0
}

// decode decodes payload n into d.scratch and removes the previous deliveries.
func (d *Decoder) decode(h wire.Header, n uint64, b []byte) (err error) {
	x := d.scratch
	x.out = x.out[:0]
	x.shape(d.ints, d.strs)
	p := &x.payload
	p.Newest, p.Base, p.HasBase, p.Frames = n, n-uint64(h.Distance), h.Distance != 0, x.frames[:]
	if p.baseline, err = d.baseline(h, n); err != nil {
		return err
	}
	behind := h.Size()
	if p.FreeBits = h.FreeBits(); p.FreeBits > 0 {
		behind--
	}
	d.decoded = MaxFrames
	if err := d.coder.decode(p, b[behind:]); err != nil {
		return err
	}
	d.decoded = len(p.Frames)
	if older := uint64(len(p.Frames) - 1); older > n || p.HasBase && older >= uint64(h.Distance) {
		return wire.Malformed("%d older frames in payload %d", older, n)
	}
	return nil
}

// baseline returns the frame that the header refers to, after verifying its hash.
func (d *Decoder) baseline(h wire.Header, n uint64) (schema.Frame, error) {
	if h.Distance == 0 {
		return schema.Frame{}, nil
	}
	if !d.processed.Any || uint64(h.Distance) > min(n, d.reach) {
		return schema.Frame{}, ErrBaselineMissing
	}
	seq := n - uint64(h.Distance)
	base, ok := d.ring.Get(seq)
	if !ok || !d.coder.learn(seq) {
		return schema.Frame{}, ErrBaselineMissing
	}
	if h.Checked && hashFrame(&base)^d.coder.hash() != h.Hash {
		return schema.Frame{}, ErrDesync
	}
	return base, nil
}

// deliver appends frame n of the payload to d.scratch.out.
func (d *Decoder) deliver(kind FrameKind, n uint64) *Delivery {
	x := d.scratch
	f := x.payload.Frames[n-x.payload.oldest()]
	info := Info{Seq: n, Kind: kind, FullBits: d.format.FullBits(f)}
	switch {
	case kind == Delta:
		info.BaselineAge = int(n - x.payload.Base)
	case kind == Reset && n != x.payload.Newest:
		info.Kind = Keyframe // only the newest frame resets the decoder
	}
	x.out = append(x.out, Delivery{Info: info, Frame: f})
	return &x.out[len(x.out)-1]
}

// finish sets the sizes of the payload in the newest frame of d.scratch.out and adds the payload to
// the profile and the explanation. It must be called before the coder learns from the frames.
func (d *Decoder) finish(h *wire.Header, size int) {
	x := d.scratch
	i := &x.out[len(x.out)-1].Info
	i.HeaderBits, i.Redundant = d.cfg.Codec.headerBits(h), len(x.payload.Frames)-1
	i.PayloadBits = 8*size - i.HeaderBits
	d.ackRate.observe(i, len(x.out))
	if d.explanation != nil {
		explain(d.explanation, d.format.Schema, d.coder, &x.payload)
		d.explanation = nil
	}
	if d.profiler.Profile != nil {
		d.profiler.payload(d.coder, &x.payload, i)
		for k := range x.out {
			d.profiler.frame(x.out[k].Frame)
		}
	}
}

// requestReset makes the next acks request a reset if err requires one. After a desync, all
// baselines are discarded, because frames coded against a wrong baseline are wrong too.
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

// AskReset makes the next acks request a reset, as if a baseline were missing. Payloads after the
// reset can be decoded without earlier payloads. It has no effect before the first payload and on a
// reliable channel.
func (d *Decoder) AskReset() {
	if d.processed.Any && !d.cfg.Reliable {
		d.requestReset(ErrBaselineMissing)
	}
}

// AckDue reports whether the decoder accepted a newer payload, or had a reason to request a reset,
// since the last AppendAck. It is always false on a reliable channel.
func (d *Decoder) AckDue() bool { return d.ackDue && !d.cfg.Reliable }

// AckPays reports whether an ack now saves more bits than it costs. overhead is its cost in bits in
// addition to its own size. Rarer acks cost less, but make baselines older and deltas larger; the
// best rate is estimated from the payloads. A request for a reset always pays. While payloads are
// lost, every ack pays if the encoder can repeat payloads by their deadline. delay is the number of
// frames from a payload to its ack.
func (d *Decoder) AckPays(overhead, delay int) bool {
	if !d.AckDue() {
		return false
	}
	if d.cfg.RepairTime > delay && d.ackRate.promptPays(overhead) {
		return true
	}
	return d.resetReason != nil || d.known <= d.first || d.ackRate.pays(d.processed.Newest, overhead, int(d.reach))
}

// AppendAck appends an ack of the payloads processed so far, typically 2 or 3 bytes. Acks may be
// lost, repeated and reordered.
func (d *Decoder) AppendAck(dst []byte) []byte {
	d.ackDue = false
	d.ackRate.last = d.processed.Newest
	a := Ack{RPC: uint8(d.cfg.RPC), ResetReason: d.resetReason, None: !d.processed.Any}
	if d.processed.Any {
		// The encoder used frame known-1 as a baseline, or known is the first payload of the epoch.
		// In both cases it needs the status of the payloads from known on.
		newest := d.processed.Newest
		need := newest - min(max(d.known, d.first), newest)
		a.Epoch, a.Seq, a.Whole = d.epoch, uint16(newest), need <= ackWindow && d.known <= d.first
		need = min(need, ackWindow)
		a.Len, a.Window = int(need), d.processed.Low(need)
	}
	return a.Append(dst)
}

// Measure adds each payload that is decoded from now on to p; nil stops it. Dropped payloads are
// not added. It codes each payload a second time, and does not allocate once warm. If the payload
// is larger than this second coding, because another encoder did not choose the smallest one, the
// difference counts as RoundingBits. Measure panics if p is of another schema.
func (d *Decoder) Measure(p *Profile) { d.profiler = newProfiler(p, d.format) }

// Explain replaces e with an explanation of the next payload that is decoded; payloads that are
// dropped do not count. nil cancels it. Explaining a payload allocates.
func (d *Decoder) Explain(e *inspect.Explanation) { d.explanation = e }
