package rpcdelta

import "github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"

// Scratch is the memory that a decoder needs only while it decodes, about 2 KiB. Decoders whose
// frames have the same shape may share one Scratch if they are not used concurrently, for example
// the decoders of all players of a server. The result of Decode is then valid until the next call
// on any of them.
type Scratch struct {
	coder   adaptive.Coder
	payload payload // being decoded
	frames  [MaxRedundancy + 1]*Frame
	out     []Delivery
}

// NewScratch returns scratch memory for frames of the schema.
func (s *Schema) NewScratch() *Scratch {
	x := &Scratch{out: make([]Delivery, 0, MaxRedundancy+1)}
	frames := s.newFrames(len(x.frames))
	for i := range frames {
		x.frames[i] = &frames[i]
	}
	x.payload.frames = make([]*Frame, 0, len(x.frames))
	return x
}

// fits reports whether the schema's frames have the shape of x.
func (x *Scratch) fits(s *Schema) bool {
	return len(x.frames[0].Ints) == s.ints && len(x.frames[0].Bytes) == s.blobs
}

// prepare sets the frames that the next payload is decoded into.
func (x *Scratch) prepare() {
	x.payload.frames = append(x.payload.frames[:0], x.frames[:]...)
}
