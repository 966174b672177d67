package snapshot

import (
	"fmt"
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/codec/lms"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// weightShift is the number of low bits of weights that are not coded.
const weightShift = 6

// maxWeight is the maximum magnitude of a coded weight.
const maxWeight = 16 << (16 - weightShift)

// modelCodec codes models as differences from others. The same code encodes and decodes.
type modelCodec struct {
	rangecoder.Coder
	weights, probs rangecoder.IntModel
	counts         [len(countSteps)][len(countSteps)]rangecoder.Prob
	moved          [2]rangecoder.Prob // the previous probability changed
	invalid        bool
}

func newModelCodec(decoding bool) *modelCodec {
	mc := &modelCodec{Coder: rangecoder.NewCoder(rangecoder.MaxCount, decoding)}
	mc.weights.Init()
	mc.probs.Init()
	for i := range mc.counts {
		rangecoder.Fill(mc.counts[i][:], rangecoder.Half, 0)
	}
	rangecoder.Fill(mc.moved[:], rangecoder.Half, 0)
	return mc
}

// Append appends the model to dst and returns the extended slice.
func (m *Model) Append(dst []byte, s *Schema) []byte {
	mc, from := newModelCodec(false), newModel(s)
	mc.Enc.Reset(dst, 0)
	for i := range m.models {
		mc.model(from.models[i], m.models[i])
	}
	return mc.Enc.Finish()
}

// ParseModel parses a model that [Model.Append] appended for objects of schema s. Any input is
// safe. An error wraps [ErrMalformed].
func ParseModel(b []byte, s *Schema) (*Model, error) {
	mc, from, m := newModelCodec(true), newModel(s), newModel(s)
	mc.Dec.Reset(b, 0)
	for i := range m.models {
		mc.model(from.models[i], m.models[i])
	}
	if mc.invalid || !mc.Dec.Complete() {
		return nil, fmt.Errorf("%w: model", ErrMalformed)
	}
	return m, nil
}

func (mc *modelCodec) model(from, to *model) {
	var old []*lms.Predictor
	from.each(func(p *lms.Predictor) { old = append(old, p) })
	to.each(func(p *lms.Predictor) {
		mc.predictor(old[0], p)
		old = old[1:]
	})
	var probs [][]rangecoder.Prob
	from.start.each(func(p []rangecoder.Prob) { probs = append(probs, p) })
	to.start.each(func(p []rangecoder.Prob) {
		for i := range p {
			mc.prob(probs[0][i], &p[i])
		}
		probs = probs[1:]
	})
}

func (mc *modelCodec) predictor(from, to *lms.Predictor) {
	for i := range to.Weights {
		a := int64(from.Weights[i]) >> weightShift
		b := (int64(to.Weights[i]) + 1<<(weightShift-1)) >> weightShift
		w := a + mc.Int(&mc.weights, 6, i, b-a)
		if w < -maxWeight || w > maxWeight {
			mc.invalid = true
			w = 0
		}
		to.Weights[i] = int32(w << weightShift)
	}
}

// countSteps are the counts of a coded probability.
var countSteps = [...]uint16{0, 3, 10, 40}

func countStep(n uint16) int {
	k := 0
	for k+1 < len(countSteps) && n >= countSteps[k+1] {
		k++
	}
	return k
}

// prob codes a probability, and how fast it adapts.
func (mc *modelCodec) prob(from rangecoder.Prob, to *rangecoder.Prob) {
	old, was := probLevel(from.P), countStep(from.N)
	level, n := probLevel(to.P), countStep(to.N)
	if !mc.Bit(&mc.moved[min(was, 1)], level != old || n != was) {
		*to = rangecoder.Prob{P: levelProb(old), N: countSteps[was]}
		return
	}
	for k := range countSteps {
		if k == len(countSteps)-1 || !mc.Bit(&mc.counts[was][k], n > k) {
			n = k
			break
		}
	}
	v := int64(old) + mc.Int(&mc.probs, 6, was, int64(level-old))
	if v < -topLevel || v > topLevel {
		mc.invalid = true
		v = 0
	}
	*to = rangecoder.Prob{P: levelProb(int(v)), N: countSteps[n]}
}

// topLevel is the level of the most likely decision.
const topLevel = 16*8 - 5*8 - 4

// probLevel returns the level of a probability: 0 for one half, negative below. A level changes the
// probability of the less likely outcome by about a twelfth.
func probLevel(p uint16) int {
	v := min(uint32(p), rangecoder.Scale-uint32(p))
	if v >= rangecoder.Half {
		return 0
	}
	e := bits.Len32(v)
	level := 16*8 - (e<<3 | int(v<<3>>(e-1)&7))
	if p < rangecoder.Half {
		return -level
	}
	return level
}

// levelProb is the inverse of probLevel, in the middle of the level.
func levelProb(level int) uint16 {
	if level == 0 {
		return rangecoder.Half
	}
	c := 16*8 - max(level, -level)
	e, m := c>>3, uint32(c&7)
	v := (8+m)<<(e-1)>>3 + 1<<(e-1)>>4
	if level < 0 {
		return uint16(v)
	}
	return uint16(rangecoder.Scale - v)
}
