package rpcdelta

import (
	"github.com/uplink-rpc/uplink/internal/codec/fnv"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/adaptive"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/cost"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/packed"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/wire"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// payload holds the frames of one payload, each coded against the one before it.
type payload struct {
	adaptive.Payload
	baseline schema.Frame // the baseline, frame Base, if HasBase is set
}

// oldest returns the sequence of the first frame.
func (p *payload) oldest() uint64 { return p.Newest - uint64(len(p.Frames)-1) }

func (p *payload) reference() *schema.Frame {
	if p.HasBase {
		return &p.baseline
	}
	return nil
}

// coder encodes and decodes payloads at one end of a stream. It holds the learned state of the
// codec, which is a function of the frames accepted since the last reset, in order.
type coder interface {
	// encode appends the payload's coded part to its header and returns the approximate size of the
	// oldest frame in bytes. It reports false if a difference from the baseline does not fit.
	encode(dst []byte, p *payload) (out []byte, oldest int, ok bool)
	// decode decodes src, which starts with the header's last byte if that has free bits. p has
	// room for MaxFrames frames; decode shortens it to the frames received.
	decode(p *payload, src []byte) error
	// measure reports the cost of the parts of the payload that was last encoded or decoded to m,
	// and returns the total in bits.
	measure(p *payload, m cost.Meter) (bits float64)
	// keyframeBytes returns the approximate size of a keyframe in bytes: at most one byte too many,
	// and less than maxUnderestimate bytes too few.
	keyframeBytes(f *schema.Frame) int
	// minKeyframeBytes returns a lower bound of keyframeBytes and takes less time.
	minKeyframeBytes(f *schema.Frame) int
	// learn learns the accepted frames up to base, so that a payload can be coded against it. It
	// reports false if newer frames have been learned already.
	learn(base uint64) bool
	// pass is called before frame n is accepted. It learns frames whose learning needs frames that
	// n will overwrite.
	pass(n uint64)
	// reset returns to the initial state.
	reset()
	// hash returns a hash of the learned state at the last learned frame.
	hash() uint16
}

// maxUnderestimate exceeds the maximum underestimate of keyframeBytes, in bytes.
const maxUnderestimate = 16

// hashFrame returns a 16-bit hash of a frame. Both ends compare it once per second.
func hashFrame(f *schema.Frame) uint16 {
	h := fnv.Offset
	for _, v := range f.Ints {
		h = h.Add(uint64(uint32(v)))
	}
	for _, b := range f.Bytes {
		h = h.Add(uint64(len(b))).AddBytes(b)
	}
	return h.Fold16()
}

// rleCoder is the codec rle. It keeps no state, and a payload contains one frame.
type rleCoder struct{ codec *packed.Codec }

func (c rleCoder) encode(dst []byte, p *payload) (out []byte, oldest int, ok bool) {
	out, ok = c.codec.Append(dst, p.Frames[0], p.reference())
	return out, len(out) - len(dst), ok
}

func (c rleCoder) decode(p *payload, src []byte) error {
	p.Frames = p.Frames[:1]
	if p.FreeBits > 0 {
		if src[0]&(1<<p.FreeBits-1) != 0 {
			return wire.Malformed("bits after the header")
		}
		src = src[1:]
	}
	return c.codec.Parse(p.Frames[0], p.reference(), src)
}

func (c rleCoder) measure(p *payload, m cost.Meter) (bits float64) {
	return c.codec.Measure(p.Frames[0], p.reference(), m)
}

func (c rleCoder) keyframeBytes(f *schema.Frame) int { return c.codec.KeyframeBytes(f) }

func (c rleCoder) minKeyframeBytes(*schema.Frame) int { return 0 }

func (c rleCoder) learn(uint64) bool { return true }

func (c rleCoder) pass(uint64) {}

func (c rleCoder) reset() {}

func (c rleCoder) hash() uint16 { return 0 }
