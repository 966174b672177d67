package rpcdelta

import (
	"fmt"
	"strings"
)

// Codec names how the difference of two frames becomes bits.
type Codec uint8

// The codecs. Both ends must use the same.
const (
	// RLE is the paper's: packed differences, and run-length coded XORs.
	RLE Codec = iota + 1
	// Adaptive predicts each component and codes what is left with an arithmetic
	// coder whose distributions follow what was taken. Older frames can ride along.
	Adaptive
)

// DefaultCodec is the codec of a config that names none.
const DefaultCodec = Adaptive

// Codecs lists all codecs.
func Codecs() []Codec { return []Codec{RLE, Adaptive} }

// String is the codec's name on the command line and in bindings.
func (c Codec) String() string {
	switch c {
	case RLE:
		return "rle"
	case Adaptive:
		return "adaptive"
	}
	return fmt.Sprintf("Codec(%d)", uint8(c))
}

// ParseCodec gives the codec of a name.
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

// FrameKind says what a frame's payload was coded against.
type FrameKind uint8

// The kinds of frames.
const (
	// Delta is coded against a baseline.
	Delta FrameKind = iota + 1
	// Intra has no baseline; the decoder's state goes on.
	Intra
	// Reset has no baseline and starts the decoder's state anew.
	Reset
)

// String is the kind's name in metrics and tables.
func (k FrameKind) String() string {
	switch k {
	case Delta:
		return "delta"
	case Intra:
		return "intra"
	case Reset:
		return "reset"
	}
	return fmt.Sprintf("FrameKind(%d)", uint8(k))
}

// Info describes a frame on the wire.
type Info struct {
	// Seq is the frame's sequence, unwrapped; it starts at 0.
	Seq  uint64
	Kind FrameKind
	// BaselineAge is how many frames before this one the baseline of its payload
	// is; 0 if it has none.
	BaselineAge int
	// FullBits is the frame as the engine would send it, see [Schema.FullBits]; at
	// the encoder with those of the frames that were held back for it.
	FullBits int
	// HeaderBits and PayloadBits are what its payload took, in whole bytes: the
	// header, and the coded part. Of the frames of one payload only the newest has
	// them.
	HeaderBits, PayloadBits int
	// Older is how many older frames ride along in the payload, and Held, which
	// only the encoder knows, how many of those no payload had before.
	Older, Held int
}

// DefaultRing is the capacity of a ring of frames that a config does not set.
const DefaultRing = 64

// DefaultMaxPayload is the largest payload of a config that sets none: a
// datagram of 1,200 bytes less its header.
const DefaultMaxPayload = 1197

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
