package statesync

import "github.com/uplink-rpc/uplink/snapshot"

// Ages of baselines, in packets, are told apart by their length in bits.
const ages = 8

// fieldModel is what was learned of a field.
type fieldModel struct {
	guess [3]linear
	scale scales
	kept  [2]chance // unchanged within an object that changed
}

// state is what adapts, kept beside each packet.
type state struct {
	fields  []fieldModel
	motion  numbers // of fields without a velocity
	place   numbers // of fields with one
	turn    numbers
	largest [levels]chance
	other   [2]chance
	flags   [][4]chance
	texts   []text
	same    [4][ages]chance // nothing changed
	zero    [3]chance
	near    chance // a place told from the viewer's
	member  [4][ages]chance
	gone    [2]chance
	reborn  chance
	held    [2]chance
	more    [4]chance // objects follow
	viewer  [3]chance
	input   [3]chance
	byte    [2]chance
	flip    [8]chance
	few     few
	view    uint16 // the viewer's object
	pace    int64  // ticks a packet
}

// What predictions start from. Q16.
var (
	motionStart = []int32{0, 1 << 14}
	placeStart  = []int32{1 << 15, 1 << 15, 1 << 15}
	turnStart   = []int32{1 << 15, 1 << 15, 1 << 15}
	scaleStart  = []int32{26000, 6500, 13000, 0, 26000, 6500}
	missedStart = int32(6500)
)

func (p *plan) newState() *state {
	s := &state{fields: make([]fieldModel, len(p.fields)), flags: make([][4]chance, len(p.flags)), texts: make([]text, len(p.strings)), pace: 1}
	for i := range s.fields {
		f, m := &p.fields[i], &s.fields[i]
		start := motionStart
		switch {
		case f.Kind == snapshot.Quat:
			start = turnStart
		case f.by >= 0:
			start = placeStart
		}
		for k := range m.guess {
			m.guess[k] = newLinear(start...)
		}
		m.scale = newScales(missedStart, scaleStart...)
		fill(m.kept[:], 6000, 4)
	}
	for _, n := range []*numbers{&s.motion, &s.place, &s.turn} {
		n.init()
	}
	s.few.init()
	for i := range s.flags {
		fill(s.flags[i][:], 4000, 4)
	}
	for i := range s.texts {
		s.texts[i].init()
	}
	for i := range s.same {
		fill(s.same[i][:], 32768, 0)
		fill(s.member[i][:], 16384, 2)
	}
	fill(s.largest[:], 16384, 2)
	fill(s.other[:], 32768, 0)
	fill(s.zero[:], 32768, 0)
	s.near = chance{32768, 0}
	fill(s.more[:], 32768, 0)
	fill(s.gone[:], 1000, 8)
	s.reborn = chance{1000, 8}
	fill(s.held[:], 60000, 4)
	fill(s.viewer[:], 60000, 4)
	fill(s.input[:], 50000, 2)
	fill(s.byte[:], 16384, 2)
	fill(s.flip[:], 20000, 2)
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
			for j := range m.guess[k].weight {
				add(int64(m.guess[k].weight[j])<<32 | int64(uint32(m.scale.weight[k][j])))
			}
		}
	}
	for i := range s.member {
		for k := range s.member[i] {
			add(int64(s.member[i][k].p)<<16 | int64(s.same[i][k].p))
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
