package statesync

import (
	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// ageContexts is the number of contexts for the age of a baseline. The context is the length of the
// age in bits.
const ageContexts = 8

type fieldModel struct {
	bias [3]int32           // correction of the predicted scales by component, in 1/4096 octave
	kept [2]rangecoder.Prob // the field of a changed object is unchanged
}

// modelState holds the adaptive part of the models. A probability is for the decision in its
// comment.
type modelState struct {
	fields      []fieldModel
	largest     quat.LargestModel
	flags       [][4]rangecoder.Prob
	texts       []textModel
	same        [4][ageContexts]rangecoder.Prob // the object is unchanged
	zero        [3]rangecoder.Prob
	near        rangecoder.Prob                  // a position without a baseline is coded relative to the viewer
	member      [4 * ageContexts]rangecoder.Prob // an object that has a baseline is updated
	gone        [2]rangecoder.Prob
	regenerated rangecoder.Prob
	held        [2]rangecoder.Prob
	more        [4]rangecoder.Prob // another update follows
	viewer      [3]rangecoder.Prob
	input       [3]rangecoder.Prob
	inputs      byteModel
	rare        [rareNumbers]rangecoder.Prob // the number is not 0
	view        uint16                       // id of the last viewer object
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

// byteModel is the model of bytes that probably equal the byte at the same place of an older
// string.
type byteModel struct {
	differs [2]rangecoder.Prob // the byte differs, by whether the previous byte did
	flip    [8]rangecoder.Prob // a bit of a differing byte is flipped
}
