package rpcdelta

import (
	"cmp"
	"fmt"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/adaptive"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/packed"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/wire"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/ringcache"
)

// Encoder encodes frames to payloads, each as the difference from a frame that the decoder is known
// to hold. It neither reads a clock nor does I/O. Not safe for concurrent use.
type Encoder struct {
	payloadWriter
	format   *packed.Format
	urgency  *urgency // nil until frames can be held
	schedule schedule
	profiler profiler
}

// NewEncoder returns an encoder for frames of schema s. The first frame has sequence 0. An error
// names the invalid setting.
func NewEncoder(s *schema.Schema, cfg EncoderConfig) (*Encoder, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	ring := min(cfg.Ring, cfg.PeerRing)
	e := &Encoder{format: packed.Of(s)}
	e.cfg = cfg
	e.payload.Frames = make([]*schema.Frame, 0, MaxFrames)
	e.checkEvery = max(1, uint64(s.RateHz()))
	e.checkAt = e.checkEvery
	e.known, e.reach = cfg.Codec.newFrames(s, ring), cfg.Codec.reach(ring)
	e.coder = newCoder(s, cfg.Codec, cfg.Prior, ring, e.known, new(adaptive.Coder), 0)
	// Frames are kept until their acks can have arrived, because the encoder must then learn from
	// them what the decoder learned.
	frames := s.NewFrames(cfg.Ring + 2*(ackWindow+1))
	e.sent = ringcache.NewFunc(len(frames), func(f *sentFrame) { f.Frame, frames = frames[0], frames[1:] })
	e.kept = uint64(e.sent.Cap() - MaxFrames + 1)
	r := newRedundancy(&cfg)
	e.redundancy = &r
	e.batch, e.deadline, e.repair = cfg.MaxBatchDelay, cfg.Deadline, newRepair(&cfg)
	e.maxAge = min(cmp.Or(cfg.Deadline, MaxFrames), MaxFrames-1)
	if cfg.MaxBatchDelay > 0 {
		e.measureUrgency()
	}
	return e, nil
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
	h, out, older, ok := e.append(dst, f, e.next, 1)
	if !ok {
		return dst, Info{}, e.tooLarge(len(out) - len(dst))
	}
	e.store(f)
	e.repair.store(e.next-1, out[len(dst):])
	return out, e.finish(e.next-1, h, len(out)-len(dst), older, 1), nil
}

// Hold assigns the next sequence to f without encoding a payload. The next call of AppendHeld or
// AppendFrame encodes it, with the frames after it, in one payload of the adaptive codec. Errors
// are those of [Encoder.AppendFrame]. In addition, the frame must fit into a payload of its own
// without a baseline, because a held frame that does not fit would block all later frames.
// Otherwise the error wraps [ErrTooLarge]. Such a frame may still fit as a delta: encode the held
// frames, then call AppendFrame. It is an error to hold more than MaxHeld frames. Hold does not
// allocate once warm.
//
// With held frames, the caller must drop late payloads earlier; see [Decoder].
func (e *Encoder) Hold(f *schema.Frame) error {
	if e.held >= MaxHeld {
		return fmt.Errorf("rpcdelta: %s: %d frames are held back; call AppendHeld first", e.format.RPC(), e.held)
	}
	if err := e.format.Check(f); err != nil {
		return err
	}
	if n := e.keyframeSize(f); n > e.cfg.MaxPayload {
		return e.tooLarge(n)
	}
	if e.urgency == nil {
		e.measureUrgency()
	}
	e.store(f)
	e.held++
	return nil
}

// measureUrgency measures the urgency of the frames from now on.
func (e *Encoder) measureUrgency() {
	if c, ok := e.coder.(*adaptiveCoder); ok {
		e.urgency = newUrgency(e.format.Schema, c)
	}
}

// store stores f under the next sequence.
func (e *Encoder) store(f *schema.Frame) {
	e.put(f)
	if e.urgency == nil {
		return
	}
	switch n := e.next - 1; e.urgency.add(f, n) {
	case patient:
	case atOnce:
		e.hurry(n, 1)
	case repeated:
		copies := 1
		if e.cfg.MaxBatchDelay > 0 {
			copies = e.redundancy.urgentPayloads()
		}
		e.hurry(n, copies)
	}
}

// Urgent reports whether the held frames should be sent now because one of them is urgent, or
// because redundant copies of a recent urgent frame are still to be sent. Without MaxBatchDelay, no
// frame is urgent before the first call of Hold.
func (e *Encoder) Urgent() bool { return e.held > 0 && e.hurries() }

// Due reports whether the held frames are to be sent now, in the tick of the newest one. This is
// the case if one of them has waited for MaxBatchDelay frames, or if their copies could otherwise
// not be sent by the deadline. It is also the case if one is urgent: a discrete field changed, or
// the model did not expect its values. While redundant copies of a recent urgent frame are still to
// be sent, held frames are due too.
func (e *Encoder) Due() bool {
	switch {
	case e.held == 0:
		return false
	case e.held > e.cfg.MaxBatchDelay:
		return true
	}
	return e.hurries() || e.isLate() || e.repairIsDue()
}

// Next returns the sequence number of the next frame.
func (e *Encoder) Next() uint64 { return e.next }

// Held returns the number of frames that are held back.
func (e *Encoder) Held() int { return e.held }

// AppendHeld appends the payload of the oldest held frames, as many as fit. Call it until Held
// returns 0. If no frame is held, it returns dst unchanged. It does not allocate once warm.
func (e *Encoder) AppendHeld(dst []byte) ([]byte, Info) {
	first, fresh := e.next-uint64(e.held), e.held
	if !e.cfg.combines() {
		fresh = min(fresh, 1)
	}
	for ; fresh > 0; fresh-- {
		n := first + uint64(fresh) - 1
		h, out, older, ok := e.append(dst, &e.sent.Get(n).Frame, n, fresh)
		if ok {
			e.held -= fresh
			e.repair.store(n, out[len(dst):])
			return out, e.finish(n, h, len(out)-len(dst), older, fresh)
		}
	}
	return dst, Info{}
}

func (e *Encoder) tooLarge(size int) error {
	return fmt.Errorf("%w: %s: %d bytes, want at most %d", ErrTooLarge, e.format.RPC(), size, e.cfg.MaxPayload)
}

// finish records that payload n was encoded and returns its description.
func (e *Encoder) finish(n uint64, h wire.Header, size, older, fresh int) Info {
	if h.Checked {
		e.checkAt = n + e.checkEvery
	}
	info := Info{
		Seq: n, Kind: e.kind(h.Distance), BaselineAge: h.Distance,
		HeaderBits: e.cfg.Codec.headerBits(&h), Redundant: older, Held: fresh - 1,
	}
	info.PayloadBits = 8*size - info.HeaderBits
	e.repair.next, e.repair.room = 0, e.repair.limit
	for q := n + 1 - uint64(fresh); q <= n; q++ {
		info.FullBits += e.format.FullBits(&e.sent.Get(q).Frame)
	}
	slot := e.sent.Get(n)
	slot.older, slot.fresh = uint8(older), uint8(fresh)
	e.countPayload(n, older)
	if e.profiler.Profile != nil {
		p := &e.payload
		p.HasBase, p.FreeBits = h.Distance != 0, h.FreeBits()
		e.profiler.payload(e.coder, p, &info)
		for _, f := range p.Frames[older+1-fresh:] {
			e.profiler.frame(f)
		}
	}
	if e.cfg.Reliable {
		e.acked = true
		e.accept(n, slot.shape())
	}
	return info
}

// Measure adds each payload that is encoded from now on to p; nil stops it. It codes each payload a
// second time, and does not allocate once warm. It panics if p is of another schema.
func (e *Encoder) Measure(p *Profile) { e.profiler = newProfiler(p, e.format) }

// Ack processes an ack of the decoder. Old and repeated acks have no effect. Neither do acks for
// which it returns [ErrAck].
func (e *Encoder) Ack(a Ack) error { return e.ack(a) }

// DeliveryStats returns the statistics of the payloads and frames sent so far. They are zero on a
// reliable channel, which has no acks.
func (e *Encoder) DeliveryStats() DeliveryStats { return e.stats }

// SetRedundancy changes EncoderConfig.Redundancy from the next frame on. If n is invalid, it
// returns the error of [EncoderConfig.Check] and leaves the setting unchanged.
func (e *Encoder) SetRedundancy(n int) error {
	cfg := e.cfg
	cfg.Redundancy = n
	if err := cfg.Check(); err != nil {
		return err
	}
	e.cfg = cfg
	e.redundancy.configure(&cfg)
	return nil
}

// LimitRedundancy limits redundancy to the frames of n older payloads, independently of
// EncoderConfig.Redundancy and [Encoder.SetRedundancy]. The initial limit is MaxRedundancy.
func (e *Encoder) LimitRedundancy(n int) {
	e.redundancy.limit = min(max(n, 0), MaxRedundancy)
	e.redundancy.replan()
}

// Redundancy returns the maximum number of older payloads whose frames the next payload repeats.
func (e *Encoder) Redundancy() int { return e.redundancy.max() }

// Loss returns estimates, based on recent acks, of the share of payloads that are lost and of the
// mean length of a loss burst, in payloads. They are 0 and 1 without loss.
func (e *Encoder) Loss() (share, burst float64) { return e.redundancy.loss.estimates() }

// AppendRepair appends a payload that is to be repeated because its ack is overdue, or returns dst
// unchanged if there is none. After [Encoder.AppendHeld], call it until it returns dst unchanged;
// the payloads may share one datagram. In total they have at most RedundancyBytes. The decoder must
// have a RepairTime. It does not allocate once warm.
func (e *Encoder) AppendRepair(dst []byte) []byte {
	r := &e.repair
	if e.repairs() == 0 {
		return dst
	}
	oldest := e.next - 1 - uint64(e.sent.Get(e.next-1).older) // oldest frame of the payload in the same datagram
	for r.next = max(r.next, e.repairable()); r.next < oldest; {
		n := r.next
		r.next++
		if copies, _ := e.overdue(n, oldest); copies == 0 {
			continue
		}
		if b := r.payloads.Get(n); b != nil && len(*b) <= r.room {
			r.room -= len(*b)
			e.sent.Get(n).repaired = true
			for q := n + 1 - uint64(e.sent.Get(n).fresh); q <= n; q++ {
				e.sent.Get(q).payloads++
			}
			return append(dst, *b...)
		}
	}
	return dst
}
