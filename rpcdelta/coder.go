package rpcdelta

import (
	"github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"
	"github.com/uplink-rpc/uplink/schema"
)

// MaxRedundancy is the most older frames that ride along in a payload.
const MaxRedundancy = 7

// payload is what one Send puts on the wire: frames in a row, the oldest first,
// each coded against the one before it.
type payload struct {
	frames []*schema.Frame // oldest first; the last has sequence newest
	newest uint64
	// baseline is what the oldest is coded against, with sequence base, unless it
	// stands alone.
	baseline schema.Frame
	base     uint64
	hasBase  bool
	// free is how many low bits of the header's last byte the coded part begins in.
	free uint
}

// oldest is the sequence of the first frame.
func (p *payload) oldest() uint64 { return p.newest - uint64(len(p.frames)-1) }

// reference is the baseline, or nil.
func (p *payload) reference() *schema.Frame {
	if p.hasBase {
		return &p.baseline
	}
	return nil
}

// coder turns payloads into bits and back at one end of a stream, and holds what
// the codec learned there: a function of the frames that were taken, in order,
// since the last reset, and of nothing else.
type coder interface {
	// encode appends the payload's coded part to its header, and says how many bytes
	// of it the oldest frame takes, about. It says false where a difference from the
	// baseline does not fit.
	encode(dst []byte, p *payload) (out []byte, oldest int, ok bool)
	// decode reads the whole of src, which begins with the header's last byte if
	// that has free bits. p has room for MaxRedundancy+1 frames, and leaves with
	// those that came.
	decode(p *payload, src []byte) error
	// measure tells m what the parts of a payload take that was just encoded or decoded,
	// and gives the sum.
	measure(p *payload, m adaptive.Meter) (bits float64)
	// intraSize is about how many bytes a frame takes alone, one too many at most and
	// fewer than intraShort too few.
	intraSize(f *schema.Frame) int
	// leastIntra is a bound of intraSize from below, found sooner.
	leastIntra(f *schema.Frame) int
	// learn learns the frames that were taken up to base, so that a payload can be
	// coded against it. It says false where newer ones have been learned already.
	learn(base uint64) bool
	// pass makes way for frame n among those that were taken: it learns what
	// could not be learned any more without those that n pushes out.
	pass(n uint64)
	// reset forgets all.
	reset()
	// hash is a hash of what was learned up to the frame of the last learn.
	hash() uint16
}

// reach is how old a frame may be that another needs: both rings, the smaller of
// ring frames, hold it, and the codec looks back so far.
func (c Codec) reach(ring int) uint64 {
	if c == Adaptive {
		ring = min(ring, adaptive.MaxRing)
	}
	return uint64(ring - 1)
}

// headerBits is the length of a header as the codec uses it: rle begins at a whole
// byte.
func (c Codec) headerBits(h *header) int {
	if c == RLE {
		return 8 * h.size()
	}
	return h.bits()
}

// newFrames makes the store of the frames that were taken, for baselines of the
// last ring frames.
func (c Codec) newFrames(s *schema.Schema, ring int) *adaptive.Frames {
	if c == Adaptive {
		ring += adaptive.LearnReach
	}
	return adaptive.NewFrames(s.Components(), s.Strings(), ring)
}
