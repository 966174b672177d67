package rpcdelta

import (
	"errors"
	"fmt"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/adaptive"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/wire"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// Codec identifies a coding of the difference of two frames.
type Codec uint8

// The codecs. Both ends of a stream must use the same.
const (
	// RLE packs differences of numbers as Unreal Engine packs vectors, and run-length codes the XOR
	// of the other fields.
	RLE Codec = iota + 1
	// Adaptive predicts each component and codes the residual with an arithmetic coder whose models
	// learn from acknowledged frames. Payloads can contain redundant frames.
	Adaptive
)

// DefaultCodec is the codec of a config that sets none.
const DefaultCodec = Adaptive

// Codecs returns all codecs.
func Codecs() []Codec { return []Codec{RLE, Adaptive} }

// String returns the name of the codec on the command line and in bindings.
func (c Codec) String() string {
	if c < RLE || c > Adaptive {
		return fmt.Sprintf("Codec(%d)", uint8(c))
	}
	return [...]string{RLE: "rle", Adaptive: "adaptive"}[c]
}

// ParseCodec returns the codec with the given name.
func ParseCodec(name string) (Codec, error) {
	for _, c := range Codecs() {
		if name == c.String() {
			return c, nil
		}
	}
	return 0, fmt.Errorf("rpcdelta: unknown codec %q; there are %s, %s", name, RLE, Adaptive)
}

// FrameKind reports whether a frame was coded against a baseline, and if not, whether it resets the
// decoder.
type FrameKind uint8

// The kinds of frames.
const (
	// Delta frames are coded against a baseline.
	Delta FrameKind = iota + 1
	// Keyframe frames have no baseline; the decoder keeps its state.
	Keyframe
	// Reset frames have no baseline and reset the state of the decoder.
	Reset
)

// String returns the name of the kind in metrics and tables.
func (k FrameKind) String() string {
	if k < Delta || k > Reset {
		return fmt.Sprintf("FrameKind(%d)", uint8(k))
	}
	return [...]string{Delta: "delta", Keyframe: "keyframe", Reset: "reset"}[k]
}

// Info describes a frame on the wire.
type Info struct {
	// Seq is the 64-bit sequence of the frame; it starts at 0.
	Seq  uint64
	Kind FrameKind
	// BaselineAge is the distance from the frame to the baseline of its payload, in frames; 0
	// without a baseline.
	BaselineAge int
	// FullBits is the size of the frame as an engine sends it: vectors as Unreal Engine packs
	// them, all other fields uncompressed, and nothing as a difference. At the encoder it includes
	// the frames that were held back for this payload.
	FullBits int
	// HeaderBits and PayloadBits are the sizes of the header and of the coded part of the payload.
	// Of the frames of one payload, only the newest has them.
	HeaderBits, PayloadBits int
	// Redundant is the number of frames before this one in its payload, including held frames. Held
	// is the number of them that no earlier payload contained. Only the encoder sets Held, since
	// the decoder cannot know it.
	Redundant, Held int
}

// PeekRPC returns the number of the RPC that a payload belongs to, without decoding it.
func PeekRPC(payload []byte) (int, error) { return wire.PeekRPC(payload) }

// Reasons for which a decoder drops a payload. All of them occur on a lossy network or under
// attack: count them.
var (
	// ErrLate reports that a newer payload was processed before.
	ErrLate = errors.New("rpcdelta: late")
	// ErrDuplicate reports that the payload was processed before.
	ErrDuplicate = errors.New("rpcdelta: duplicate")
	// ErrBaselineMissing reports that the baseline of the payload is not in the ring. The next ack
	// requests a reset.
	ErrBaselineMissing = errors.New("rpcdelta: baseline missing")
	// ErrDesync reports that the divergence check failed: the two ends hold different baselines or
	// models. The next ack requests a reset.
	ErrDesync = errors.New("rpcdelta: desync")
	// ErrMalformed reports a payload that no encoder of this schema writes.
	ErrMalformed = wire.ErrMalformed
)

// ErrTooLarge reports a frame that does not fit into one payload. Nothing was encoded, and the
// stream continues.
var ErrTooLarge = errors.New("rpcdelta: frame too large")

// ErrAck reports an ack that cannot be genuine: it refers to frames that were never sent, or to an
// epoch that the encoder did not open.
var ErrAck = errors.New("rpcdelta: impossible ack")

// reach returns the maximum age of a baseline in frames. ring is the size of the smaller of the two
// rings.
func (c Codec) reach(ring int) uint64 {
	if c == Adaptive {
		ring = min(ring, adaptive.MaxRing)
	}
	return uint64(ring - 1)
}

// headerBits returns the length of a header. The coded part of rle starts at a byte boundary.
func (c Codec) headerBits(h *wire.Header) int {
	if c == RLE {
		return 8 * h.Size()
	}
	return h.Bits()
}

// newFrames returns the store of accepted frames, for baselines of the last ring frames.
func (c Codec) newFrames(s *schema.Schema, ring int) *adaptive.Frames {
	if c == Adaptive {
		ring += adaptive.LearnReach
	}
	return adaptive.NewFrames(s.Components(), s.Strings(), ring)
}
