package rpcdelta

import (
	"github.com/uplink-rpc/uplink/rpcdelta/internal/cost"
	"github.com/uplink-rpc/uplink/rpcdelta/internal/packed"
	"github.com/uplink-rpc/uplink/rpcdelta/internal/wire"
	"github.com/uplink-rpc/uplink/schema"
)

// rleCoder is the codec rle. It keeps no state, and a payload contains one frame.
type rleCoder struct{ codec *packed.Codec }

func (c rleCoder) learn(uint64) bool { return true }
func (c rleCoder) pass(uint64)       {}
func (c rleCoder) reset()            {}
func (c rleCoder) hash() uint16      { return 0 }

func (c rleCoder) encode(dst []byte, p *payload) (out []byte, oldest int, ok bool) {
	out, ok = c.codec.Append(dst, p.frames[0], p.reference())
	return out, len(out) - len(dst), ok
}

func (c rleCoder) decode(p *payload, src []byte) error {
	p.frames = p.frames[:1]
	if p.free > 0 {
		if src[0]&(1<<p.free-1) != 0 {
			return wire.Malformed("bits after the header")
		}
		src = src[1:]
	}
	return c.codec.Parse(p.frames[0], p.reference(), src)
}

func (c rleCoder) measure(p *payload, m cost.Meter) (bits float64) {
	return c.codec.Measure(p.frames[0], p.reference(), m)
}

func (c rleCoder) keyframeBytes(f *schema.Frame) int  { return c.codec.KeyframeBytes(f) }
func (c rleCoder) minKeyframeBytes(*schema.Frame) int { return 0 }
