package statesync

import (
	"github.com/uplink-rpc/uplink/internal/codec/fnv"
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

func (p *plan) newState() *modelState {
	s := &modelState{fields: make([]fieldModel, len(p.fields)), flags: make([][4]rangecoder.Prob, len(p.flags)), texts: make([]textModel, len(p.strings)), pace: 1}
	for i := range s.fields {
		rangecoder.Fill(s.fields[i].kept[:], 6000, 4)
	}
	rangecoder.Fill(s.rare[:], 6000, 4)
	for i := range s.flags {
		rangecoder.Fill(s.flags[i][:], 4000, 4)
	}
	for i := range s.texts {
		t := &s.texts[i]
		rangecoder.Fill(t.changed[:], 4000, 4)
		t.length = rangecoder.Prob{P: rangecoder.Half}
		rangecoder.Fill(t.bytes.differs[:], rangecoder.Half, 0)
		rangecoder.Fill(t.bytes.flip[:], rangecoder.Half, 0)
	}
	for i := range s.same {
		rangecoder.Fill(s.same[i][:], rangecoder.Half, 0)
	}
	rangecoder.Fill(s.member[:], 16384, 2)
	s.largest.Init()
	rangecoder.Fill(s.zero[:], rangecoder.Half, 0)
	s.near = rangecoder.Prob{P: rangecoder.Half}
	rangecoder.Fill(s.more[:], rangecoder.Half, 0)
	rangecoder.Fill(s.gone[:], 1000, 8)
	s.regenerated = rangecoder.Prob{P: 1000, N: 8}
	rangecoder.Fill(s.held[:], 60000, 4)
	rangecoder.Fill(s.viewer[:], 60000, 4)
	rangecoder.Fill(s.input[:], 50000, 2)
	rangecoder.Fill(s.inputs.differs[:], 16384, 2)
	rangecoder.Fill(s.inputs.flip[:], 20000, 2)
	return s
}

func (s *modelState) copyFrom(o *modelState) {
	fields, flags, texts := s.fields, s.flags, s.texts
	copy(fields, o.fields)
	copy(flags, o.flags)
	copy(texts, o.texts)
	*s = *o
	s.fields, s.flags, s.texts = fields, flags, texts
}

// hash returns the hash of the divergence check: of models and baselines.
func (pc *payloadCodec) hash() uint16 {
	h, s := fnv.Offset, pc.out.state
	add := func(x int64) { h = h.Add(uint64(x)); h ^= h >> 29 }
	for i := range s.fields {
		for _, v := range s.fields[i].bias {
			add(int64(v))
		}
	}
	for i := range s.member {
		add(int64(s.member[i].P)<<16 | int64(s.same[i/ageContexts][i%ageContexts].P))
	}
	for i := range pc.bases {
		r := pc.baseline(int32(i))
		add(int64(r.object.ID)<<8 | int64(r.object.Generation))
		for _, x := range pc.plan.wordsOf(r) {
			add(int64(x))
		}
	}
	return uint16(h >> 48)
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
