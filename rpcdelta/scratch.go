package rpcdelta

import (
	"github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"
	"github.com/uplink-rpc/uplink/schema"
)

// Scratch is the memory that a decoder needs only while it decodes, about 2 KiB. Decoders whose
// frames have the same shape may share one Scratch if they are not used concurrently, for example
// the decoders of all players of a server. The result of Decode is then valid until the next call
// on any of them.
type Scratch struct {
	coder   adaptive.Coder
	payload payload // being decoded
	frames  [MaxRedundancy + 1]*schema.Frame
	out     []Delivery
}

// NewScratch returns scratch memory for frames of schema s.
func NewScratch(s *schema.Schema) *Scratch {
	x := &Scratch{out: make([]Delivery, 0, MaxRedundancy+1)}
	frames := s.NewFrames(len(x.frames))
	for i := range frames {
		x.frames[i] = &frames[i]
	}
	x.payload.frames = make([]*schema.Frame, 0, len(x.frames))
	return x
}

// fits reports whether the schema's frames have the shape of x.
func (x *Scratch) fits(s *schema.Schema) bool {
	return len(x.frames[0].Ints) == s.Components() && len(x.frames[0].Bytes) == s.Strings()
}

// prepare sets the frames that the next payload is decoded into.
func (x *Scratch) prepare() {
	x.payload.frames = append(x.payload.frames[:0], x.frames[:]...)
}
