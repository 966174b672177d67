package rpcdelta

import (
	"errors"
	"fmt"

	"github.com/uplink-rpc/uplink/ringcache"
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
	// Reliable says that payloads arrive in order, every one: the baseline is the
	// frame before, and there are no acks.
	Reliable bool
}

// Encoder makes payloads of frames, each the difference from a frame that the
// decoder is known to hold. It neither reads a clock nor does I/O. Not safe for
// concurrent use.
type Encoder struct {
	schema *Schema
	cfg    EncoderConfig
	codec  *rleCodec
	sent   *ringcache.Ring[Frame]
	reach  uint64 // how old a baseline may be

	next       uint64 // sequence of the next frame
	base       uint64 // newest frame that the decoder took
	hasBase    bool
	epoch      uint8
	resolved   uint64 // payloads below this are known to be processed or not
	acked      bool   // something was acked in this epoch
	checkEvery uint64
	checkAt    uint64 // sequence from which the next delta carries a hash
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
	err := errors.Join(checkCodec(&cfg.Codec), checkRPC(cfg.RPC), checkRing("Ring", &cfg.Ring), checkRing("PeerRing", &cfg.PeerRing))
	if err != nil {
		return nil, err
	}
	e := &Encoder{
		schema:     s,
		cfg:        cfg,
		codec:      newRLE(s),
		sent:       newRing(s, cfg.Ring),
		reach:      uint64(min(cfg.Ring, cfg.PeerRing) - 1),
		checkEvery: max(1, uint64(s.RateHz())),
	}
	e.checkAt = e.checkEvery
	return e, nil
}

// newRing makes a ring of frames whose components lie in one array.
func newRing(s *Schema, capacity int) *ringcache.Ring[Frame] {
	frames := s.newFrames(capacity)
	return ringcache.NewFunc(capacity, func(f *Frame) {
		*f, frames = frames[0], frames[1:]
	})
}

// AppendFrame appends the payload of the next frame to dst: header and coded
// part. f must have the schema's shape and ranges, as Quantize makes it; else
// the error says what is wrong. A payload above MaxPayload is [ErrTooLarge]
// with its size. On an error dst is returned as it was, the sequence is not
// used, and the stream goes on. It allocates nothing once warm.
func (e *Encoder) AppendFrame(dst []byte, f *Frame) ([]byte, Info, error) {
	if err := e.schema.check(f); err != nil {
		return dst, Info{}, err
	}
	h, out := e.encode(dst, f)
	if n := len(out) - len(dst); n > e.cfg.MaxPayload {
		return dst, Info{}, fmt.Errorf("%w: %s: %d bytes, want at most %d", ErrTooLarge, e.schema.rpc, n, e.cfg.MaxPayload)
	}
	if h.checked {
		e.checkAt = e.next + e.checkEvery
	}
	info := Info{Seq: e.next, Kind: e.kind(h), BaselineAge: h.distance, FullBits: e.schema.FullBits(f), HeaderBits: 8 * h.size(), PayloadBits: 8 * (len(out) - len(dst) - h.size())}
	e.sent.Put(e.next).CopyFrom(f)
	if e.cfg.Reliable {
		e.base, e.hasBase, e.acked = e.next, true, true
	}
	e.next++
	return out, info, nil
}

// encode appends header and coded part of f: the difference from the baseline
// where there is one and both together are not longer than the frame alone. A
// hash that is due does not count, or it might stay due.
func (e *Encoder) encode(dst []byte, f *Frame) (h header, out []byte) {
	if base := e.baseline(); base != nil {
		h = e.header(int(e.next - e.base))
		most := longHeader + e.codec.intraSize(f) - h.size()
		if e.next >= e.checkAt {
			h.check(base.hash())
		}
		for {
			out, ok := e.codec.encode(h.append(dst), f, base)
			size := len(out) - len(dst)
			if !ok || size-h.size() > most {
				break
			}
			if size <= e.cfg.MaxPayload {
				return h, out
			}
			if !h.checked {
				break
			}
			h = e.header(int(e.next - e.base)) // without the hash it may fit
		}
	}
	h = e.header(0)
	out, _ = e.codec.encode(h.append(dst), f, nil)
	return h, out
}

// baseline gives the frame to code the next one against, or nil.
func (e *Encoder) baseline() *Frame {
	if !e.hasBase || e.next-e.base > e.reach {
		return nil
	}
	return e.sent.Get(e.base)
}

// header makes the next frame's header, short where that is unambiguous.
func (e *Encoder) header(distance int) header {
	h := header{rpc: uint8(e.cfg.RPC), seq: uint16(e.next), epoch: e.epoch, distance: distance}
	unacked := e.next - e.base
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
	if n := newest - behind; n >= e.resolved {
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
	if unknown := n - e.resolved; unknown > uint64(a.Len) && (!a.Whole || e.acked) {
		e.reset()
		return
	}
	e.base, e.hasBase, e.acked = n, true, true
	e.resolved = n + 1
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
	e.resolved = e.next
}
