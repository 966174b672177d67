package snapshots

import (
	"slices"
)

// chance is section 3 of docs/spec/state.md.
type chance struct{ p, n int64 }

func chances(count int, p, n int64) []chance { return slices.Repeat([]chance{{p, n}}, count) }

type textModel struct{ changed, length, differs, flip []chance }

type fieldModel struct {
	bias [3]int64
	kept []chance
}

// stateModels is section 4.
type stateModels struct {
	fields                                                                    []fieldModel
	flags                                                                     [][]chance
	texts                                                                     []textModel
	largest, other, same, zero, near, member, gone, again, held, more, viewer []chance
	input, differs, flip, rare                                                []chance
	view, pace                                                                int64
}

func (m *stateModels) clone() *stateModels {
	c := *m
	c.fields = slices.Clone(m.fields)
	for i := range c.fields {
		c.fields[i].kept = slices.Clone(m.fields[i].kept)
	}
	c.flags = slices.Clone(m.flags)
	for i := range c.flags {
		c.flags[i] = slices.Clone(m.flags[i])
	}
	c.texts = slices.Clone(m.texts)
	for i, t := range m.texts {
		c.texts[i] = textModel{slices.Clone(t.changed), slices.Clone(t.length), slices.Clone(t.differs), slices.Clone(t.flip)}
	}
	for _, l := range []*[]chance{&c.largest, &c.other, &c.same, &c.zero, &c.near, &c.member, &c.gone, &c.again, &c.held, &c.more, &c.viewer, &c.input, &c.differs, &c.flip, &c.rare} {
		*l = slices.Clone(*l)
	}
	return &c
}

type stateField struct {
	field
	name               string
	velocity           int // or -1
	factor             int64
	trends, isVelocity bool
	atRest             bool // zero at rest
	weights            int
}

// stateUpdate is an update of an object.
type stateUpdate struct {
	object
	number, tick int64
	gone         bool
	rests, zero  bool
	misses       []int64
	trends       [][3]int64
}

type statePacket struct {
	number, tick, base int64
	models             *stateModels
	updates            []*stateUpdate
	inputs             []byte
	from, to           int64
	keyframe           bool
}

type stateReceiver struct {
	coder
	fields       []stateField
	order        []int
	rest         int // the field that marks rest, or -1
	position     int
	initial      *stateModels
	packets      map[int64]*statePacket
	decoded      map[int64]bool
	any          bool
	newest       int64
	epoch        int64
	floor, final int64
	objects      map[int64][]*stateUpdate // ascending numbers
	out          *statePacket
	bases        []*stateUpdate // ascending ids
	viewer       int64          // or -1
	at           []int64        // V, or nil
	logs         []int64
	inputs       map[int64][]byte // of the packet, by tick
	missing      []int64          // ticks
}

func (r *stateReceiver) init() {
	r.position = -1
	m := &stateModels{
		largest: chances(320, 32768, 0), other: chances(2, 32768, 0), same: chances(32, 32768, 0), zero: chances(3, 32768, 0), near: chances(1, 32768, 0),
		member: chances(32, 16384, 2), gone: chances(2, 1000, 8), again: chances(1, 1000, 8), held: chances(2, 60000, 4), more: chances(4, 32768, 0),
		viewer: chances(3, 60000, 4), input: chances(3, 50000, 2), differs: chances(2, 16384, 2), flip: chances(8, 20000, 2), rare: chances(6, 6000, 4), pace: 1,
	}
	var rank [3][]int
	for i := range r.fields {
		f := &r.fields[i]
		m.fields = append(m.fields, fieldModel{kept: chances(2, 6000, 4)})
		switch f.class {
		case "flags":
			m.flags = append(m.flags, chances(4, 4000, 4))
			continue
		case "bytes":
			m.texts = append(m.texts, textModel{chances(4, 4000, 4), chances(1, 32768, 0), chances(2, 32768, 0), chances(8, 32768, 0)})
			continue
		case "quat":
			f.q = newQuantizer(f.lo, f.hi)
			f.weights = 2
			rank[2] = append(rank[2], i)
		case "motion":
			if r.position < 0 {
				r.position = i
			} else {
				f.atRest = f.lo <= 0 && f.hi >= 0
			}
		}
		f.weights = 2
		if f.velocity >= 0 {
			f.weights = 0
		} else if f.isVelocity {
			f.weights = 1
		}
		if f.class == "quat" {
			continue
		}
		f.trends = f.velocity < 0 && !f.isVelocity
		rank[truth(f.velocity >= 0)] = append(rank[truth(f.velocity >= 0)], i)
	}
	r.order = slices.Concat(rank[:]...)
	r.initial, r.packets, r.decoded, r.objects = m, map[int64]*statePacket{}, map[int64]bool{}, map[int64][]*stateUpdate{}
}

func (r *stateReceiver) bit(c *chance) bool {
	b, to := r.decide(c.p), int64(0)
	if b {
		to = 65535
	}
	c.p = clamp(c.p+((to-c.p)*(131072/(2*c.n+3))>>16), 24, 65512)
	if c.n < 45 {
		c.n++
	}
	return b
}

func (r *stateReceiver) frequencies(level int64) (f [64]int64) {
	mid := []int64{72, 90, 114}[level%3] << (level / 3) * 2
	above := func(s int64) int64 {
		if s == 0 {
			return 65472
		}
		size := s
		if s >= 4 {
			size = (2 + s&1) << ((s - 2) / 2)
		}
		return 65472 * mid / (mid + size<<8 - 128)
	}
	sum := int64(0)
	for s := range int64(64) {
		f[s] = above(s) + 1
		if s < 63 {
			f[s] -= above(s + 1)
		}
		sum += f[s]
	}
	f[0] += 65536 - sum
	return f
}

// symbol decodes a symbol with these frequencies, whose sum is 65,536.
func (c *coder) symbol(f *[64]int64) int64 {
	if c.script != nil {
		return c.script.symbol(f)
	}
	scale := c.rng >> 16
	x := min(c.code/scale, 65535)
	s, below := int64(0), uint64(0)
	for below+uint64(f[s]) <= x {
		below += uint64(f[s])
		s++
	}
	c.code -= scale * below
	c.rng = scale * uint64(f[s])
	c.check()
	c.renorm()
	return s
}

func (r *stateReceiver) number(level int64) int64 {
	f := r.frequencies(level)
	s := r.symbol(&f)
	if s == 0 {
		return 0
	}
	size, rest := s, int64(0)
	if s >= 4 {
		rest = (s - 2) / 2
		size = (2 + s&1) << rest
	}
	v := r.raw(rest + 1)
	if size |= v >> 1; v&1 == 1 {
		return -size
	}
	return size
}

const (
	rareTick = iota
	rareTicks
	rareBehind
	rareBytes
	rarePosition
	rareID
)

func (r *stateReceiver) rareNumber(which int) int64 {
	if !r.bit(&r.out.models.rare[which]) {
		return 0
	}
	level := []int64{4, 4, 4, 15, 0, 12}[which]
	if which == rarePosition {
		f := &r.fields[r.position]
		level = clamp(3*bitlen(f.hi-f.lo)-16, 0, 39)
	}
	return r.number(level)
}
