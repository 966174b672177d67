package rpcdelta

import (
	"fmt"
	"strings"

	"github.com/uplink-rpc/uplink/rpcdelta/internal/wire"
)

// Codec identifies a coding of the difference of two frames.
type Codec uint8

// The codecs. Both ends of a stream must use the same.
const (
	// RLE packs differences of numbers as Unreal Engine packs vectors, and run-length codes the XOR
	// of the other fields.
	RLE Codec = iota + 1
	// Adaptive predicts each component and codes the residual with an arithmetic coder whose
	// distributions adapt to the accepted frames. Payloads can contain redundant frames.
	Adaptive
)

// DefaultCodec is the codec of a config that sets none.
const DefaultCodec = Adaptive

// Codecs returns all codecs.
func Codecs() []Codec { return []Codec{RLE, Adaptive} }

// String returns the name of the codec on the command line and in bindings.
func (c Codec) String() string {
	switch c {
	case RLE:
		return "rle"
	case Adaptive:
		return "adaptive"
	}
	return fmt.Sprintf("Codec(%d)", uint8(c))
}

// ParseCodec returns the codec with the given name.
func ParseCodec(name string) (Codec, error) {
	var names []string
	for _, c := range Codecs() {
		if name == c.String() {
			return c, nil
		}
		names = append(names, c.String())
	}
	return 0, fmt.Errorf("rpcdelta: unknown codec %q; there are %s", name, strings.Join(names, ", "))
}

// FrameKind reports the baseline that a payload was coded against.
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
	switch k {
	case Delta:
		return "delta"
	case Keyframe:
		return "keyframe"
	case Reset:
		return "reset"
	}
	return fmt.Sprintf("FrameKind(%d)", uint8(k))
}

// Info describes a frame on the wire.
type Info struct {
	// Seq is the 64-bit sequence of the frame; it starts at 0.
	Seq  uint64
	Kind FrameKind
	// BaselineAge is the distance from the frame to the baseline of its payload, in frames; 0
	// without a baseline.
	BaselineAge int
	// FullBits is the size of the frame as an engine sends it, see [inspect.FullBits]. At the encoder it
	// includes the frames that were held back for this payload.
	FullBits int
	// HeaderBits and PayloadBits are the sizes of the header and of the coded part of the payload.
	// Of the frames of one payload, only the newest has them.
	HeaderBits, PayloadBits int
	// Redundant is the number of redundant and held frames in the payload before this one. Held,
	// which only the encoder knows, is the number of those that no payload contained before.
	Redundant, Held int
}

// Limits of configs.
const (
	// MaxRPC is the highest number of an RPC.
	MaxRPC = wire.MaxRPC
	// MaxRing is the maximum capacity of a ring of frames.
	MaxRing = wire.MaxRing
)

// DefaultRing is the capacity of a ring of frames for a config that sets none.
const DefaultRing = 64

// defaultMaxPayload is the maximum payload size of a config that sets none: a datagram of 1,200
// bytes less its header.
const defaultMaxPayload = 1197

func checkCodec(c *Codec) error {
	if *c == 0 {
		*c = DefaultCodec
	}
	if *c > Adaptive {
		return fmt.Errorf("rpcdelta: unknown codec %v", *c)
	}
	return nil
}

func checkRing(name string, n *int) error {
	if *n == 0 {
		*n = DefaultRing
	}
	if *n < 2 || *n > MaxRing {
		return fmt.Errorf("rpcdelta: %s of %d frames, want 2 to %d", name, *n, MaxRing)
	}
	return nil
}

func checkRPC(n int) error {
	if n < 0 || n > MaxRPC {
		return fmt.Errorf("rpcdelta: RPC number %d, want 0 to %d", n, MaxRPC)
	}
	return nil
}

// PeekRPC returns the number of the RPC that a payload belongs to, without decoding it.
func PeekRPC(payload []byte) (int, error) { return wire.PeekRPC(payload) }
