package rpcdelta

import (
	"github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"
	"github.com/uplink-rpc/uplink/schema"
)

// Scratch is what a decoder needs only while it decodes, some 2 KiB. Decoders
// whose frames have one schema, at any rate, may share one if they are not used
// concurrently: a server's of all its players, say. What a call of Decode
// returned is then valid until the next call on any of them.
type Scratch struct {
	coder   adaptive.Coder
	payload payload // being decoded
	frames  [MaxRedundancy + 1]*schema.Frame
	out     []Delivery
}

// NewScratch returns a Scratch for frames of schema s.
func NewScratch(s *schema.Schema) *Scratch {
	x := &Scratch{out: make([]Delivery, 0, MaxRedundancy+1)}
	frames := s.NewFrames(len(x.frames))
	for i := range frames {
		x.frames[i] = &frames[i]
	}
	x.payload.frames = make([]*schema.Frame, 0, len(x.frames))
	return x
}

// fits says whether the schema's frames have the right shape.
func (x *Scratch) fits(s *schema.Schema) bool {
	return len(x.frames[0].Ints) == s.Components() && len(x.frames[0].Bytes) == s.Strings()
}

// prepare has the payload's frames decoded into the room for them.
func (x *Scratch) prepare() {
	x.payload.frames = append(x.payload.frames[:0], x.frames[:]...)
}
