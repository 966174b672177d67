package rpcdelta

import (
	"errors"
	"fmt"

	"github.com/uplink-rpc/uplink/ringcache"
	"github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"
)

// EncoderConfig says how an Encoder works. Zero fields mean the defaults.
type EncoderConfig struct {
	// Codec must be the decoder's; default [DefaultCodec].
	Codec Codec
	// RPC is the number in headers that tells RPCs of one connection apart, 0 to
	// MaxRPC. The first eight have shorter headers.
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
	// RedundancyBytes is how long older frames may make a payload; default
	// DefaultRedundancyBytes. The newest frame goes whatever it takes.
	RedundancyBytes int
	// Reliable says that payloads arrive in order, every one: the baseline is the
	// frame before, and there are no acks.
	Reliable bool
}

// Encoder makes payloads of frames, each the difference from a frame that the
// decoder is known to hold. It neither reads a clock nor does I/O. Not safe for
// concurrent use.
type Encoder struct {
	schema  *Schema
	cfg     EncoderConfig
	coder   coder
	sent    *ringcache.Ring[record]
	reach   uint64 // how old a frame may be that another needs
	kept    uint64 // how old a payload may be when its fate becomes known
	newest  uint64 // the frame that is being coded or learned from
	payload payload
	spare   []byte // for a second attempt
	losses  lossMeter
	most    int // older payloads whose frames may ride along

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
	Frame
	older uint8 // frames that rode along in the payload of its name
	fresh uint8 // those of them, itself included, that no payload had before; 0: no payload has its name
	taken bool  // the decoder is known to have taken it in this epoch
}

// NewEncoder makes an encoder of the schema's frames whose first frame has
// sequence 0. An error names the setting that is wrong.
func NewEncoder(s *Schema, cfg EncoderConfig) (*Encoder, error) {
	if cfg.MaxPayload == 0 {
		cfg.MaxPayload = DefaultMaxPayload
	}
	if cfg.MaxPayload < longHeader+hashSize+1 {
		return nil, fmt.Errorf("rpcdelta: payloads of %d bytes are too small", cfg.MaxPayload)
	}
	if cfg.Redundancy < RedundancyOff || cfg.Redundancy > MaxRedundancy {
		return nil, fmt.Errorf("rpcdelta: Redundancy of %d frames, want at most %d, RedundancyAuto or RedundancyOff", cfg.Redundancy, MaxRedundancy)
	}
	if cfg.RedundancyBytes == 0 {
		cfg.RedundancyBytes = DefaultRedundancyBytes
	}
	if cfg.RedundancyBytes < 0 {
		return nil, fmt.Errorf("rpcdelta: RedundancyBytes is %d", cfg.RedundancyBytes)
	}
	err := errors.Join(checkCodec(&cfg.Codec), checkRPC(cfg.RPC), checkRing("Ring", &cfg.Ring), checkRing("PeerRing", &cfg.PeerRing))
	if err != nil {
		return nil, err
	}
	e := &Encoder{
		schema: s,
		cfg:    cfg,
		// Frames stay until an ack that speaks of them has come, so that what the
		// decoder learned when it took them can be repeated.
		sent:       newRecords(s, cfg.Ring+2*(AckWindow+1)),
		reach:      cfg.Codec.reach(min(cfg.Ring, cfg.PeerRing)),
		payload:    payload{frames: make([]*Frame, 0, MaxRedundancy+1)},
		most:       MaxRedundancy,
		checkEvery: max(1, uint64(s.RateHz())),
	}
	e.coder = newCoder(cfg.Codec, s, min(cfg.Ring, cfg.PeerRing), e.taken)
	e.checkAt = e.checkEvery
	e.kept = uint64(e.sent.Cap()-MaxRedundancy) - min(e.reach, adaptive.LearnReach)
	return e, nil
}

// newRecords makes a ring of frames whose components lie in one array.
func newRecords(s *Schema, capacity int) *ringcache.Ring[record] {
	frames := s.newFrames(capacity)
	return ringcache.NewFunc(capacity, func(f *record) {
		f.Frame, frames = frames[0], frames[1:]
	})
}

// taken gives a frame that the decoder took, and has where it decodes or learns
// from the newest.
func (e *Encoder) taken(seq uint64) *Frame {
	if f := e.sent.Get(seq); f != nil && f.taken && e.newest-seq <= e.reach {
		return &f.Frame
	}
	return nil
}

// AppendFrame appends the payload of the next frame to dst: header and coded
// part, with older frames that may be lost as far as Redundancy says. f must
// have the schema's shape and ranges, as Quantize makes it; else the error says
// what is wrong. A payload above MaxPayload is [ErrTooLarge] with its size. On an
// error dst is returned as it was, the sequence is not used, and the stream goes
// on. Where frames are held back it is [Encoder.Hold] and [Encoder.AppendHeld]. It
// allocates nothing once warm.
func (e *Encoder) AppendFrame(dst []byte, f *Frame) ([]byte, Info, error) {
	if e.held > 0 {
		if err := e.Hold(f); err != nil {
			return dst, Info{}, err
		}
		out, info := e.AppendHeld(dst)
		return out, info, nil
	}
	if err := e.schema.check(f); err != nil {
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
	return fmt.Errorf("%w: %s: %d bytes, want at most %d", ErrTooLarge, e.schema.rpc, size, e.cfg.MaxPayload)
}

// put gives f the next sequence.
func (e *Encoder) put(f *Frame) {
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
		info.FullBits += e.schema.FullBits(&e.sent.Get(q).Frame)
	}
	slot := e.sent.Get(n)
	slot.older, slot.fresh = uint8(older), uint8(fresh)
	if e.cfg.Reliable {
		e.acked = true
		e.take(n)
	}
	return info
}

// encode appends header and coded part of payload n, whose newest frame is f. The
// last fresh frames must be in it, and those of as many older payloads as there is
// room for, at most. It says false where that is too large.
func (e *Encoder) encode(dst []byte, f *Frame, n uint64, fresh, payloads int) (h header, out []byte, older int, ok bool) {
	for older = e.older(n, fresh, payloads); older >= fresh-1; {
		h, out = e.encodeRow(dst, f, n, older)
		size, most := len(out)-len(dst), e.cfg.MaxPayload
		if older >= fresh {
			most = min(most, e.cfg.RedundancyBytes)
		}
		if size <= most {
			return h, out, older, true
		}
		if older == fresh-1 {
			break
		}
		older = max(fresh-1, min(older, (older+1)*most/size)-1)
	}
	return h, out, older, false
}

// older is how many older frames payload n should have, at most: those that no
// payload had yet, and those of so many payloads before.
func (e *Encoder) older(n uint64, fresh, payloads int) int {
	if !e.cfg.combines() {
		return 0
	}
	older, left := fresh-1, n+1-uint64(fresh)
	for ; payloads > 0 && left > 0 && older < MaxRedundancy; payloads-- {
		k := e.sent.Get(left - 1).fresh
		older, left = older+int(k), left-uint64(k)
	}
	older = min(older, MaxRedundancy)
	if e.hasBase {
		return min(older, int(n-e.base-1)) // the decoder has the others
	}
	// A fresh decoder counts from the 16 bits of the header.
	return min(older, int(uint16(n)))
}

// encodeRow appends header and coded part of frame n and those before it: the
// oldest as the difference from a baseline, unless that takes more than without.
func (e *Encoder) encodeRow(dst []byte, f *Frame, n uint64, older int) (header, []byte) {
	p := &e.payload
	p.frames, p.newest, e.newest = p.frames[:0], n, n
	for s := n - uint64(older); s < n; s++ {
		p.frames = append(p.frames, &e.sent.Get(s).Frame)
	}
	p.frames = append(p.frames, f)
	delta := attempt{}
	if p.baseline, p.base = e.baseline(), e.base; p.baseline != nil {
		delta = e.appendDelta(dst, p)
		if delta.out != nil && delta.first < longHeader+e.coder.intraSize(p.frames[0]) {
			return delta.header, delta.out
		}
	}
	p.baseline = nil
	alone := e.attempt(e.spare[:0], p, e.header(n, 0))
	e.spare = alone.out
	if delta.out != nil && delta.size <= alone.size {
		return delta.header, delta.out
	}
	return alone.header, append(dst, alone.out...)
}

// attempt is one way to send a frame.
type attempt struct {
	header header
	out    []byte // nil: it cannot be sent so
	size   int    // bytes, as they were without a hash
	first  int    // the oldest frame's part of them, with the header
}

// attempt appends header and coded part.
func (e *Encoder) attempt(dst []byte, p *payload, h header) attempt {
	p.free = h.free()
	out, oldest, ok := e.coder.encode(h.append(dst), p)
	if !ok {
		return attempt{}
	}
	header := h.uncheckedSize()
	size := len(out) - len(dst) - h.size() + header
	return attempt{h, out, size, header + oldest}
}

// appendDelta appends the payload as the difference from its baseline, with a
// hash if one is due and there is room.
func (e *Encoder) appendDelta(dst []byte, p *payload) attempt {
	h := e.header(p.newest, int(p.newest-p.base))
	if p.newest >= e.checkAt {
		h.check(p.baseline.hash() ^ e.coder.hash(p.base))
	}
	a := e.attempt(dst, p, h)
	if h.checked && len(a.out)-len(dst) > e.cfg.MaxPayload {
		a = e.attempt(dst, p, e.header(p.newest, int(p.newest-p.base)))
	}
	if len(a.out)-len(dst) > e.cfg.MaxPayload {
		return attempt{}
	}
	return a
}

// baseline gives the frame to code the next one against, or nil.
func (e *Encoder) baseline() *Frame {
	if !e.hasBase || !e.coder.covers(e.base) {
		return nil
	}
	return e.taken(e.base)
}

// header makes the header of payload n, short where that is unambiguous.
func (e *Encoder) header(n uint64, distance int) header {
	h := header{rpc: uint8(e.cfg.RPC), seq: uint16(n), epoch: e.epoch, distance: distance}
	unacked := n - e.base
	h.long = distance == 0 || distance > maxShortDistance || h.rpc > maxShortRPC || unacked >= maxShortUnacked
	return h
}

// kind names the frame as the decoder will most likely see it: until something
// of an epoch was acked, each of its frames may be the one that resets.
func (e *Encoder) kind(h header) FrameKind {
	switch {
	case h.distance != 0:
		return Delta
	case e.acked:
		return Intra
	}
	return Reset
}

// ErrAck says that an ack cannot be true: it speaks of frames that were never
// sent, or of an epoch that the encoder did not open.
var ErrAck = errors.New("rpcdelta: impossible ack")

// Ack takes the decoder's ack. Old ones and repeated ones do nothing. An ack
// that cannot be true is [ErrAck], and does nothing.
func (e *Encoder) Ack(a Ack) error {
	if a.None {
		e.answer(a)
		return nil
	}
	newest := e.next - 1
	behind := uint64(uint16(newest) - a.Seq)
	if e.next == 0 || behind > newest {
		return fmt.Errorf("%w: sequence %d of %d frames sent", ErrAck, a.Seq, e.next)
	}
	if a.Epoch != e.epoch {
		if (e.epoch-a.Epoch)&epochMask > epochSpan {
			return fmt.Errorf("%w: epoch %d in epoch %d", ErrAck, a.Epoch, e.epoch)
		}
		return nil // from before a reset arrived
	}
	n := newest - behind
	if r := e.sent.Get(n); r != nil && r.fresh == 0 {
		return fmt.Errorf("%w: no payload has the name %d", ErrAck, a.Seq)
	}
	if n >= e.resolved {
		e.resolve(a, n)
	}
	e.answer(a)
	return nil
}

// resolve learns from an ack of payload n what the decoder took. If the window
// does not reach back to what is known already, the decoder's state cannot be
// known either, and a new epoch begins; so it does if the ack is the whole of the
// epoch but not of what was acked before, since then the decoder is another one.
func (e *Encoder) resolve(a Ack, n uint64) {
	from, span := e.resolved, uint64(a.Len)
	if !a.Whole && n-from > span || a.Whole && e.acked && n-from >= span {
		e.reset()
		return
	}
	if n-from > span {
		from = n - span
	}
	if e.next-from > e.kept {
		e.reset() // the frames themselves are gone, or those to learn from with them
		return
	}
	for q := from; q <= n; q++ {
		if e.sent.Get(q).fresh == 0 {
			continue // no payload has that name
		}
		processed := q == n || a.Window>>(n-q-1)&1 != 0
		if processed {
			e.process(q)
		}
		e.losses.observe(!processed)
	}
	e.acked = true
	e.resolved = n + 1
}

// process repeats what the decoder did with payload n: it took each frame that
// was newer than those before, or of a payload that resets the newest.
func (e *Encoder) process(n uint64) {
	q := n
	if e.hasBase {
		q = max(n-uint64(e.sent.Get(n).older), e.base+1)
	}
	for ; q <= n; q++ {
		e.take(q)
	}
}

// take notes that the decoder took frame n.
func (e *Encoder) take(n uint64) {
	e.sent.Get(n).taken = true
	e.base, e.hasBase, e.newest = n, true, n
	e.coder.take(n)
}

// answer resets for a decoder that lost its frames. Until something of the epoch
// was acked every frame is one that resets, so there is nothing to do.
func (e *Encoder) answer(a Ack) {
	if a.Trouble != NoTrouble && e.acked {
		e.reset()
	}
}

// reset opens an epoch: frames have no baseline until one of them is acked. It
// happens only on an ack of the epoch before, so the decoder is never more than
// one epoch behind.
func (e *Encoder) reset() {
	e.epoch = (e.epoch + 1) & epochMask
	e.hasBase, e.acked = false, false
	e.resolved = e.next - uint64(e.held)
	e.coder.reset()
	for s := e.next - min(e.next, uint64(e.sent.Cap())); s < e.next; s++ {
		e.sent.Get(s).taken = false
	}
}
