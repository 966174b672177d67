package statesync

import (
	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// ageContexts is the number of contexts for the ages of baselines, which are lengths in bits.
const ageContexts = 8

type fieldModel struct {
	bias [3]int32           // of the predicted scales, in 1/4096 octave
	kept [2]rangecoder.Prob // unchanged in an object that changed
}

// modelState is the part of the models that adapts.
type modelState struct {
	fields      []fieldModel
	largest     quat.LargestModel
	flags       [][4]rangecoder.Prob
	texts       []textModel
	same        [4][ageContexts]rangecoder.Prob // nothing changed
	zero        [3]rangecoder.Prob
	near        rangecoder.Prob                  // a position is relative to the viewer
	member      [4 * ageContexts]rangecoder.Prob // an object that has a baseline is updated
	gone        [2]rangecoder.Prob
	regenerated rangecoder.Prob
	held        [2]rangecoder.Prob
	more        [4]rangecoder.Prob // another update follows
	viewer      [3]rangecoder.Prob
	input       [3]rangecoder.Prob
	inputs      byteModel
	rare        [rareNumbers]rangecoder.Prob // it is not 0
	view        uint16                       // the viewer object
	pace        int64                        // ticks per packet
}

func (s *modelState) copyFrom(o *modelState) {
	fields, flags, texts := s.fields, s.flags, s.texts
	copy(fields, o.fields)
	copy(flags, o.flags)
	copy(texts, o.texts)
	*s = *o
	s.fields, s.flags, s.texts = fields, flags, texts
}

type textModel struct {
	changed [4]rangecoder.Prob
	length  rangecoder.Prob
	bytes   byteModel
}

// byteModel is the model of bytes of which each probably equals another one.
type byteModel struct {
	differs [2]rangecoder.Prob // by whether the previous one did
	flip    [8]rangecoder.Prob // a bit of one that differs
}
