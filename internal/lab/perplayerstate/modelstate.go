package perplayerstate

import (
	"github.com/uplink-rpc/uplink/internal/codec/fnv"
	"github.com/uplink-rpc/uplink/internal/codec/lms"
	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
	"github.com/uplink-rpc/uplink/schema"
)

// ageContexts is the number of contexts for the ages of baselines, which are lengths in bits.
const ageContexts = 8

type fieldModel struct {
	guess [3]lms.Predictor
	scale [3]lms.Predictor
	kept  [2]rangecoder.Prob // unchanged in an object that changed
}

type modelState struct {
	fields      []fieldModel
	numbers     rangecoder.IntModel // of fields
	largest     quat.LargestModel
	flags       [][4]rangecoder.Prob
	texts       []textModel
	same        [4][ageContexts]rangecoder.Prob // nothing changed
	zero        [3]rangecoder.Prob
	near        rangecoder.Prob // a position is relative to the viewer
	member      [4][ageContexts]rangecoder.Prob
	gone        [2]rangecoder.Prob
	regenerated rangecoder.Prob
	held        [2]rangecoder.Prob
	more        [4]rangecoder.Prob // another update follows
	viewer      [3]rangecoder.Prob
	input       [3]rangecoder.Prob
	inputs      byteModel
	rare        [rareNumbers]rangecoder.LengthModel
	view        uint16 // the viewer object
	pace        int64  // ticks per packet
}

// Contexts of signs.
const (
	motionSigns   = 0 // of fields without a velocity
	velocitySigns = 9 // of fields with one
	turnSigns     = 18
	rareSigns     = 21
)

// Initial weights of predictions, Q16.
var (
	motionStart   = []int32{0, 1 << 14}
	velocityStart = []int32{1 << 15, 1 << 15, 1 << 15}
	turnStart     = []int32{1 << 15, 1 << 15, 1 << 15}
	scaleStart    = []int32{3250, 6500, 13000, 0, 26000, 6500, 0, 0, 6500}
)

func (p *plan) newState() *modelState {
	s := &modelState{fields: make([]fieldModel, len(p.fields)), flags: make([][4]rangecoder.Prob, len(p.flags)), texts: make([]textModel, len(p.strings)), pace: 1}
	for i := range s.fields {
		f, m := &p.fields[i], &s.fields[i]
		start := motionStart
		switch {
		case f.Class == schema.ClassQuat:
			start = turnStart
		case f.by >= 0:
			start = velocityStart
		}
		for k := range m.guess {
			m.guess[k] = lms.New(start...)
			m.scale[k] = lms.New(scaleStart...)
		}
		rangecoder.Fill(m.kept[:], 6000, 4)
	}
	s.numbers.Init()
	for i := range s.rare {
		s.rare[i].Init(p.rare[i])
	}
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
		rangecoder.Fill(s.member[i][:], 16384, 2)
	}
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
func (s *modelState) hash(bases []*record) uint16 {
	h := fnv.Offset
	add := func(x int64) { h = h.Add(uint64(x)); h ^= h >> 29 }
	for i := range s.fields {
		m := &s.fields[i]
		for k := range m.guess {
			for j, v := range m.guess[k].Weights {
				add(int64(v)<<32 | int64(uint32(m.scale[k].Weights[j])))
			}
		}
	}
	for i := range s.member {
		for k := range s.member[i] {
			add(int64(s.member[i][k].P)<<16 | int64(s.same[i][k].P))
		}
	}
	for _, r := range bases {
		add(int64(r.object.ID)<<8 | int64(r.object.Generation))
		for _, x := range r.row() {
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
