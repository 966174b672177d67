package bench

import (
	"context"

	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/trace"
)

// Course is what becomes of the frames of a stream on a link, whatever a codec makes of them, frame by frame.
type Course []Passage

// Passage is what becomes of one frame.
type Passage struct {
	// Base is the newest frame that the client knew the server to hold when this one left, -1 if none.
	Base int
	// HeaderBits is the size of the message's header, in whole bytes.
	HeaderBits int
	// Arrived says that the frame's payload came, and in time.
	Arrived bool
}

// NewCourse sends so many frames over the link of cfg, which names no schemes: their payloads are as small as can be, so
// that each frame which can have a baseline has one.
func NewCourse(ctx context.Context, frames int, rateHz float64, cfg Config) (Course, error) {
	cfg.Schemes, cfg.Distance, cfg.Untimed = []string{rpcdelta.RLE.String()}, 0, true
	cfg.Seeds, cfg.Frames, cfg.Warmup = 1, 0, 0
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s, err := schema.New("Course", rateHz, []schema.Field{{Name: "Nothing", Kind: schema.KindBool}})
	if err != nil {
		return nil, err
	}
	t := &trace.Trace{Name: s.RPC(), Schema: s, Frames: make([]schema.Frame, frames)}
	for i := range t.Frames {
		t.Frames[i] = *s.NewFrame()
	}
	course := make(Course, 0, frames)
	p := newPair(ctx, t, cfg, scheme{codec: rpcdelta.RLE})
	p.course = &course
	err = p.run()
	return course, err
}

func (c *Course) sent(info rpcdelta.Info) {
	base := -1
	if info.Kind == rpcdelta.Delta {
		base = len(*c) - info.BaselineAge
	}
	*c = append(*c, Passage{Base: base, HeaderBits: info.HeaderBits})
}

func (c *Course) delivered(got []rpcdelta.Delivery) {
	for i := range got {
		(*c)[got[i].Seq].Arrived = true
	}
}
