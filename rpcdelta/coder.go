package rpcdelta

import "github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"

// MaxRedundancy is the most older frames that ride along in a payload.
const MaxRedundancy = 7

// payload is what one Send puts on the wire: frames in a row, the oldest first,
// each coded against the one before it.
type payload struct {
	frames []*Frame // oldest first; the last has sequence newest
	newest uint64
	// baseline is what the oldest is coded against, with sequence base; nil if it
	// stands alone.
	baseline *Frame
	base     uint64
	// free is how many low bits of the header's last byte the coded part begins in.
	free uint
}

// oldest is the sequence of the first frame.
func (p *payload) oldest() uint64 { return p.newest - uint64(len(p.frames)-1) }

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
	// intraSize is about how many bytes a frame takes alone, one too many at most.
	intraSize(f *Frame) int
	// take learns from frame n, which is in the ring by now.
	take(n uint64)
	// reset forgets all.
	reset()
	// covers says whether what was known when frame base was taken is still there.
	covers(base uint64) bool
	// hash is a hash of that.
	hash(base uint64) uint16
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

// newCoder makes the coder of a codec. taken gives a frame that was taken, if
// the rings of both ends, the smaller of ring frames, hold it for sure.
func newCoder(c Codec, s *Schema, ring int, taken func(seq uint64) *Frame) coder {
	if c == RLE {
		return newRLE(s)
	}
	return newAdaptive(s, ring, taken)
}
