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

// modelCodec codes a model as its differences from another model. The same code encodes and
// decodes.
type modelCodec struct {
	rangecoder.Coder
	weights, probs rangecoder.IntModel
	rates          [rates][rates]rangecoder.Prob
	moved          rangecoder.Prob
	invalid        bool
}

func newModelCodec(decoding bool) *modelCodec {
	mc := &modelCodec{Coder: rangecoder.NewCoder(rangecoder.MaxCount, decoding), moved: rangecoder.Prob{P: rangecoder.Half}}
	mc.weights.Init()
	mc.probs.Init()
	for i := range mc.rates {
		rangecoder.Fill(mc.rates[i][:], rangecoder.Half, 0)
	}
	return mc
}

// parseModel parses a model that appendTo appended for objects of schema s. Any input is
// safe. An error wraps [ErrMalformed].
func parseModel(b []byte, s *Schema) (*modelSet, error) {
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
	var old []*lms.Weights
	from.each(func(w *lms.Weights) { old = append(old, w) })
	to.each(func(w *lms.Weights) {
		mc.weight(old[0], w)
		old = old[1:]
	})
	for i := range to.start {
		mc.prob(from.start[i], &to.start[i])
	}
}

func (mc *modelCodec) weight(from, to *lms.Weights) {
	for i := range to {
		a := int64(from[i]) >> weightShift
		b := (int64(to[i]) + 1<<(weightShift-1)) >> weightShift
		w := a + mc.Int(&mc.weights, 6, i, b-a)
		if w < -maxWeight || w > maxWeight {
			mc.invalid = true
			w = 0
		}
		to[i] = int32(w << weightShift)
	}
}

// prob codes a probability and its adaptation rate.
func (mc *modelCodec) prob(from prob, to *prob) {
	old, was := probLevel(uint16(from)), int(from&rateMask)
	level, rate := probLevel(uint16(*to)), int(*to&rateMask)
	if !mc.Bit(&mc.moved, level != old || rate != was) {
		*to = levelProb(old) | prob(was)
		return
	}
	for k := range rates {
		if k == rates-1 || !mc.Bit(&mc.rates[was][k], rate > k) {
			rate = k
			break
		}
	}
	v := int64(old) + mc.Int(&mc.probs, 6, 0, int64(level-old))
	if v < -topLevel || v > topLevel {
		mc.invalid = true
		v = 0
	}
	*to = levelProb(int(v)) | prob(rate)
}

// topLevel is the level of the most likely decision.
const topLevel = 16*8 - 5*8

// probLevel returns the level of a probability: 0 for one half, negative below. A level changes the
// probability of the less likely outcome by about a twelfth.
func probLevel(p uint16) int {
	p &^= rateMask
	v := max(min(uint32(p), rangecoder.Scale-uint32(p)), unlikely)
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
func levelProb(level int) prob {
	if level == 0 {
		return rangecoder.Half
	}
	c := 16*8 - max(level, -level)
	e, m := c>>3, uint32(c&7)
	v := max((8+m)<<(e-1)>>3+1<<(e-1)>>4, unlikely) &^ rateMask
	if level < 0 {
		return prob(v)
	}
	return prob(rangecoder.Scale - v)
}
