package rpcdelta

import (
	"sync"

	"github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"
	"github.com/uplink-rpc/uplink/rpcdelta/internal/cost"
	"github.com/uplink-rpc/uplink/rpcdelta/internal/wire"
	"github.com/uplink-rpc/uplink/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/schema"
)

// adaptiveCoder is the codec that predicts components and codes residuals with a range coder; see
// docs/codec.md.
type adaptiveCoder struct {
	coder       *adaptive.Coder
	known       *adaptive.Frames // accepted frames
	model       *adaptive.Model
	state       *adaptive.State // at the newest baseline
	checkpoints *checkpoints    // earlier states; nil if late payloads are not decoded
	using       *adaptive.State // state of the current payload: state, or a checkpoint
	rows        [MaxRedundancy + 1]*adaptive.Row
	payload     adaptive.Payload // view of the current payload, in rows
}

// newAdaptive returns a coder for frames that refer to the last ring frames in known. late selects
// whether payloads can be decoded whose baseline is older than the state.
func newAdaptive(s *schema.Schema, p *prior.Prior, ring int, known *adaptive.Frames, coder *adaptive.Coder, late bool) *adaptiveCoder {
	m := modelOf(s, p)
	c := &adaptiveCoder{coder: coder, known: known, model: m, state: m.NewState(ring)}
	if late {
		c.checkpoints = newCheckpoints(m, ring)
	}
	c.using = c.state
	return c
}

func (c *adaptiveCoder) learn(base uint64) bool {
	if c.checkpoints != nil {
		c.checkpoints.save(c.state, base)
	}
	if c.using = c.state; c.state.Learn(base, c.known) {
		return true
	}
	if c.checkpoints == nil {
		return false
	}
	s := c.checkpoints.restore(base, c.known)
	if s == nil {
		return false
	}
	c.using = s
	return true
}

func (c *adaptiveCoder) pass(n uint64) {
	if keep := uint64(c.known.Cap() - adaptive.LearnReach); n >= keep {
		c.state.Learn(n-keep, c.known)
	}
}

func (c *adaptiveCoder) reset() {
	c.state.Reset()
	if c.checkpoints != nil {
		c.checkpoints.reset()
	}
}

func (c *adaptiveCoder) hash() uint16 { return c.using.Hash() }

func (c *adaptiveCoder) minKeyframeBytes(f *schema.Frame) int {
	return c.model.MinKeyframeBytes(f)
}

func (c *adaptiveCoder) keyframeBytes(f *schema.Frame) int {
	return c.model.KeyframeBytes(f)
}

// fill sets up the view of p that the codec reads and writes.
func (c *adaptiveCoder) fill(p *payload) *adaptive.Payload {
	for i, f := range p.frames {
		c.rows[i] = f
	}
	c.payload = adaptive.Payload{
		Rows: c.rows[:len(p.frames)], Newest: p.newest, Base: p.base, HasBase: p.hasBase, FreeBits: p.free,
	}
	if !p.hasBase {
		// A keyframe does not depend on its sequence number, and a new decoder knows only the low
		// 16 bits of it.
		c.payload.Newest = MaxRedundancy
	}
	return &c.payload
}

func (c *adaptiveCoder) encode(dst []byte, p *payload) (out []byte, oldest int, ok bool) {
	out = c.coder.Encode(dst, c.fill(p), c.using, c.known)
	return out, c.coder.OldestBits() / 8, true
}

func (c *adaptiveCoder) decode(p *payload, src []byte) error {
	if err := c.coder.Decode(src, c.fill(p), c.using, c.known); err != nil {
		return wire.Malformed("coded part: %v", err)
	}
	p.frames = p.frames[:len(c.payload.Rows)]
	return nil
}

func (c *adaptiveCoder) measure(p *payload, m cost.Meter) (bits float64) {
	return c.coder.Measure(m, c.fill(p), c.using, c.known)
}

// models caches the models of a schema, by prior.
type models struct {
	mu    sync.Mutex
	known map[*prior.Prior]*adaptive.Model
}

// maxModels is the maximum number of cached models.
const maxModels = 8

type modelsKey struct{}

func modelsOf(s *schema.Schema) *models {
	return s.Derived(modelsKey{}, func(*schema.Schema) any { return &models{} }).(*models)
}

// modelOf returns the schema compiled for a prior, the generic one if p is nil.
func modelOf(s *schema.Schema, p *prior.Prior) *adaptive.Model {
	if p == nil {
		p = prior.Generic()
	}
	x := modelsOf(s)
	x.mu.Lock()
	defer x.mu.Unlock()
	m := x.known[p]
	if m == nil {
		m = (*adaptive.Prior)(p).Compile(adaptive.FieldsOf(s), s.RateHz())
		if x.known == nil || len(x.known) >= maxModels {
			x.known = map[*prior.Prior]*adaptive.Model{}
		}
		x.known[p] = m
	}
	return m
}
