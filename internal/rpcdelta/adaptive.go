package rpcdelta

import (
	"sync"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/adaptive"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/cost"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/packed"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/wire"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// newCoder returns the coder of a codec. Frames refer to the last ring frames in known. Late
// payloads, whose baseline is older than the state, are decoded from the last checkpoints.
func newCoder(s *schema.Schema, codec Codec, p *prior.Prior, ring int, known *adaptive.Frames, scratch *adaptive.Coder, checkpoints int) coder {
	if codec == RLE {
		return rleCoder{packed.NewCodec(packed.Of(s))}
	}
	m := modelOf(s, p)
	c := &adaptiveCoder{coder: scratch, known: known, model: m, state: m.NewState(ring)}
	if checkpoints > 0 {
		c.checkpoints = newCheckpoints(m, ring, checkpoints)
	}
	c.using = c.state
	return c
}

// adaptiveCoder is the codec that predicts components and codes residuals with a range coder; see
// docs/spec/adaptive.md.
type adaptiveCoder struct {
	coder       *adaptive.Coder
	known       *adaptive.Frames
	model       *adaptive.Model
	state       *adaptive.State // learned up to the newest baseline
	checkpoints checkpoints
	using       *adaptive.State  // state of the current payload: state, or a checkpoint
	payload     adaptive.Payload // the current payload in the codec's representation
}

func (c *adaptiveCoder) learn(base uint64) bool {
	c.checkpoints.save(c.state, base)
	if c.using = c.state; c.state.Learn(base, c.known) {
		return true
	}
	s := c.checkpoints.restore(base, c.known)
	if s != nil {
		c.using = s
	}
	return s != nil
}

func (c *adaptiveCoder) pass(n uint64) {
	if keep := uint64(c.known.Cap() - adaptive.LearnReach); n >= keep {
		c.state.Learn(n-keep, c.known)
	}
}

func (c *adaptiveCoder) reset() {
	c.state.Reset()
	c.checkpoints.saved = 0
}

func (c *adaptiveCoder) hash() uint16 { return c.using.Hash() }

func (c *adaptiveCoder) minKeyframeBytes(f *schema.Frame) int { return c.model.MinKeyframeBytes(f) }

func (c *adaptiveCoder) keyframeBytes(f *schema.Frame) int { return c.model.KeyframeBytes(f) }

// view returns p in the codec's representation.
func (c *adaptiveCoder) view(p *payload) *adaptive.Payload {
	c.payload = p.Payload
	if !p.HasBase {
		// A keyframe does not depend on its sequence number, and a new decoder knows only the low
		// 16 bits of the sequence.
		c.payload.Newest = MaxFrames - 1
	}
	return &c.payload
}

func (c *adaptiveCoder) encode(dst []byte, p *payload) (out []byte, oldest int, ok bool) {
	out = c.coder.Encode(dst, c.view(p), c.using, c.known)
	return out, c.coder.OldestBits() / 8, true
}

func (c *adaptiveCoder) decode(p *payload, src []byte) error {
	if err := c.coder.Decode(src, c.view(p), c.using, c.known); err != nil {
		return wire.Malformed("coded part: %v", err)
	}
	p.Frames, p.Repeats = c.payload.Frames, c.payload.Repeats
	return nil
}

func (c *adaptiveCoder) measure(p *payload, m cost.Meter) (bits float64) {
	return c.coder.Measure(m, c.view(p), c.using, c.known)
}

// models caches the models of a schema, by prior.
type models struct {
	mu    sync.Mutex
	known map[*prior.Prior]*adaptive.Model
}

const maxModels = 8

type modelsKey struct{}

func modelsOf(s *schema.Schema) *models {
	return s.Derived(modelsKey{}, func(*schema.Schema) any {
		return &models{known: map[*prior.Prior]*adaptive.Model{}}
	}).(*models)
}

// modelOf returns the schema compiled for a prior, the generic one if p is nil.
func modelOf(s *schema.Schema, p *prior.Prior) *adaptive.Model {
	if p == nil {
		p = prior.Generic()
	}
	x := modelsOf(s)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.known[p] == nil {
		if len(x.known) >= maxModels {
			clear(x.known)
		}
		x.known[p] = (*adaptive.Prior)(p).Compile(adaptive.FieldsOf(s))
	}
	return x.known[p]
}

const (
	maxCheckpoints     = 8
	repairCheckpoints  = 3 // further checkpoints, because of the delay of repeated payloads
	checkpointInterval = 6 // minimum distance of two checkpoints, in frames
)

// checkpoints are copies of earlier learned states. A late payload has an older baseline, by as
// many frames as acks are in flight. The zero value saves nothing.
type checkpoints struct {
	states  []*adaptive.State // ring buffer
	saved   int               // number of states saved since the last reset
	scratch *adaptive.State
}

func newCheckpoints(m *adaptive.Model, ring, n int) checkpoints {
	c := checkpoints{scratch: m.NewState(ring)}
	for range n {
		c.states = append(c.states, m.NewState(ring))
	}
	return c
}

// save copies s before it learns up to base, unless the last checkpoint is recent.
func (c *checkpoints) save(s *adaptive.State, base uint64) {
	at, ok := s.Newest()
	if !ok || base <= at || c.states == nil {
		return
	}
	if c.saved > 0 {
		if last, _ := c.states[(c.saved-1)%len(c.states)].Newest(); at < last+checkpointInterval {
			return
		}
	}
	c.states[c.saved%len(c.states)].CopyFrom(s)
	c.saved++
}

// restore returns the learned state at base, or nil if base is too old. The state is valid until
// the next call.
func (c *checkpoints) restore(base uint64, known *adaptive.Frames) *adaptive.State {
	for i := c.saved - 1; i >= max(0, c.saved-len(c.states)); i-- {
		s := c.states[i%len(c.states)]
		if at, _ := s.Newest(); at > base {
			continue
		}
		if !s.CanLearn(known) {
			break
		}
		if c.scratch.CopyFrom(s); c.scratch.Learn(base, known) {
			return c.scratch
		}
		break
	}
	return nil
}
