package quat

import (
	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// Doubts is the number of contexts for the uncertainty of a prediction.
const Doubts = 8

// LargestModel is the model of the index of an orientation's largest element, given a prediction.
// Init prepares it.
type LargestModel struct {
	first [rangecoder.Levels][Doubts]rangecoder.Prob // probability that the index differs from the predicted one
	other [2]rangecoder.Prob
}

// Init resets the model.
func (m *LargestModel) Init() {
	for i := range m.first {
		rangecoder.Fill(m.first[i][:], rangecoder.Half, 0)
	}
	rangecoder.Fill(m.other[:], rangecoder.Half, 0)
}

// Code codes the index of the largest element of an orientation, 0 to 3, and reports whether it
// differs from the largest element of the prediction q. doubt, below [Doubts], is the context.
func (m *LargestModel) Code(c *rangecoder.Coder, index int, q *Fixed, g *Quantizer, doubt int) (largest int, other bool) {
	first, second, margin := q.Largest(g)
	if !c.Bit(&m.first[fixed.Clamp((margin+256)*2>>8, 0, rangecoder.Levels-1)][doubt], index != first) {
		return first, false
	}
	if !c.Bit(&m.other[0], index != second) {
		return second, true
	}
	low, high := Others(first, second)
	if c.Bit(&m.other[1], index == high) {
		return high, true
	}
	return low, true
}
