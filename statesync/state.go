package statesync

import (
	"github.com/uplink-rpc/uplink/internal/codec/lms"
	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
	"github.com/uplink-rpc/uplink/schema"
)

// Ages of baselines, in packets, are told apart by their length in bits.
const ages = 8

// fieldModel is what was learned of a field.
type fieldModel struct {
	guess [3]lms.Predictor
	scale [3]lms.Predictor
	kept  [2]rangecoder.Prob // unchanged within an object that changed
}

// state is what adapts, kept beside each packet.
type state struct {
	fields  []fieldModel
	numbers rangecoder.IntModel // of fields
	largest quat.LargestModel
	flags   [][4]rangecoder.Prob
	texts   []text
	same    [4][ages]rangecoder.Prob // nothing changed
	zero    [3]rangecoder.Prob
	near    rangecoder.Prob // a place told from the viewer's
	member  [4][ages]rangecoder.Prob
	gone    [2]rangecoder.Prob
	reborn  rangecoder.Prob
	held    [2]rangecoder.Prob
	more    [4]rangecoder.Prob // objects follow
	viewer  [3]rangecoder.Prob
	input   [3]rangecoder.Prob
	byte    [2]rangecoder.Prob
	flip    [8]rangecoder.Prob
	rare    [rares]rangecoder.LengthModel
	view    uint16 // the viewer's object
	pace    int64  // ticks a packet
}

// Contexts of signs.
const (
	motionSigns = 0 // of fields without a velocity
	placeSigns  = 9 // of fields with one
	turnSigns   = 18
	rareSigns   = 21
)

// What predictions start from. Q16.
var (
	motionStart = []int32{0, 1 << 14}
	placeStart  = []int32{1 << 15, 1 << 15, 1 << 15}
	turnStart   = []int32{1 << 15, 1 << 15, 1 << 15}
	scaleStart  = []int32{3250, 6500, 13000, 0, 26000, 6500, 0, 0, 6500}
)

func (p *plan) newState() *state {
	s := &state{fields: make([]fieldModel, len(p.fields)), flags: make([][4]rangecoder.Prob, len(p.flags)), texts: make([]text, len(p.strings)), pace: 1}
	for i := range s.fields {
		f, m := &p.fields[i], &s.fields[i]
		start := motionStart
		switch {
		case f.Class == schema.ClassQuat:
			start = turnStart
		case f.by >= 0:
			start = placeStart
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
		s.texts[i].init()
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
	s.reborn = rangecoder.Prob{P: 1000, N: 8}
	rangecoder.Fill(s.held[:], 60000, 4)
	rangecoder.Fill(s.viewer[:], 60000, 4)
	rangecoder.Fill(s.input[:], 50000, 2)
	rangecoder.Fill(s.byte[:], 16384, 2)
	rangecoder.Fill(s.flip[:], 20000, 2)
	return s
}

// copyFrom makes s equal to o, of the same plan.
func (s *state) copyFrom(o *state) {
	fields, flags, texts := s.fields, s.flags, s.texts
	copy(fields, o.fields)
	copy(flags, o.flags)
	copy(texts, o.texts)
	*s = *o
	s.fields, s.flags, s.texts = fields, flags, texts
}

// hash is of what two ends must have alike: models, and the baselines of a view.
func (s *state) hash(bases []*record) uint16 {
	h := uint64(14695981039346656037)
	add := func(x int64) { h = (h ^ uint64(x)) * 1099511628211; h ^= h >> 29 }
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
