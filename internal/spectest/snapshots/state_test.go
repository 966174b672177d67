package snapshots

import (
	"encoding/hex"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
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

func (r *stateReceiver) number(level int64) int64 {
	f := r.frequencies(level)
	scale := r.rng >> 16
	x := min(r.code/scale, 65535)
	s, below := int64(0), uint64(0)
	for below+uint64(f[s]) <= x {
		below += uint64(f[s])
		s++
	}
	r.code -= scale * below
	r.rng = scale * uint64(f[s])
	r.check()
	r.renorm()
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

// receive decodes a packet. It returns nil and the reason if there is no update.
func (r *stateReceiver) receive(b []byte) (*statePacket, string) {
	next := int64(0)
	if r.any {
		next = r.newest + 1
	}
	word := int64(b[0]) | int64(b[1])<<8
	distance, low, width, epoch, tick := word&63, word>>6, int64(10), int64(0), int64(0)
	b = b[2:]
	if distance == 0 {
		low, width, epoch, b = low|int64(b[0])<<10, 16, int64(b[1]), b[2:]
		v := uint64(0)
		for i := 0; ; i++ {
			v |= uint64(b[0]&127) << (7 * i)
			more := b[0]&128 != 0
			b = b[1:]
			if !more {
				break
			}
		}
		tick = int64(v>>1) ^ -int64(v&1)
	}
	n := unwrap(low, 1<<width, next, 1<<(width-1))
	if r.decoded[n] || r.any && n+64 <= r.newest || distance > n {
		return nil, "late"
	}
	ahead := !r.any || n > r.newest
	p := &statePacket{number: n, tick: tick, base: n - distance, keyframe: distance == 0}
	switch {
	case p.keyframe:
		if !ahead && epoch != r.epoch {
			return nil, "late"
		}
		p.models = r.initial.clone()
	case r.packets[p.base] == nil:
		return nil, "missing"
	case p.base < r.floor:
		return nil, "late"
	default:
		p.models = r.packets[p.base].models.clone()
	}
	r.out = p
	r.start(b)
	if reason := r.decode(); reason != "" {
		return nil, reason
	}
	first := !r.any || p.keyframe && n > r.newest && (epoch-r.epoch)&255 >= 32
	if !first && (n > r.newest && p.tick <= r.packets[r.newest].tick || n < r.newest && p.tick >= r.packets[r.newest].tick) {
		return nil, "malformed"
	}
	r.accept(p, ahead, epoch)
	return p, ""
}

func (r *stateReceiver) accept(p *statePacket, ahead bool, epoch int64) {
	before, n := r.newest, p.number
	switch {
	case ahead && p.keyframe && (!r.any || epoch != r.epoch):
		r.packets, r.objects = map[int64]*statePacket{}, map[int64][]*stateUpdate{}
		r.final, r.epoch = max(r.final, n-7), epoch
	case ahead:
		for k := before + 1; k <= n; k++ {
			if o := r.packets[k-8]; o != nil && !o.keyframe {
				r.settle(o.base)
			}
		}
		r.settle(n - 56)
	}
	r.decoded[n] = true
	if ahead || n+8 > before {
		r.packets[n] = p
		for _, u := range p.updates {
			all := append(r.objects[u.id], u)
			slices.SortFunc(all, func(a, b *stateUpdate) int { return int(a.number - b.number) })
			r.objects[u.id] = all
		}
	}
	if ahead {
		r.any, r.newest = true, n
	}
	for k := range r.packets {
		if k <= r.newest-64 {
			delete(r.packets, k)
		}
	}
}

// settle is T8. Updates of packets that are not kept were never stored.
func (r *stateReceiver) settle(floor int64) {
	r.floor = max(r.floor, floor)
	r.final = max(r.final, r.floor-7)
}

// baseline is T7.
func (r *stateReceiver) baseline(id int64, view map[int64]bool) *stateUpdate {
	all := r.objects[id]
	for i := len(all) - 1; i >= 0; i-- {
		if u := all[i]; u.number < r.final || view[u.number] {
			if u.gone {
				return nil
			}
			return u
		}
	}
	return nil
}

func (r *stateReceiver) decode() string {
	p := r.out
	m := p.models
	r.bases, r.viewer, r.at = nil, -1, nil
	if !p.keyframe {
		base := r.packets[p.base]
		view := map[int64]bool{p.base: true}
		for k := p.base - 8; k > p.base-64; k-- {
			view[k] = r.packets[k] != nil
		}
		before := 1
		for i := range int64(7) {
			in := r.bit(&m.held[before])
			if before = int(truth(in)); in {
				if r.packets[p.base-1-i] == nil {
					return "missing"
				}
				view[p.base-1-i] = true
			}
		}
		for id := range r.objects {
			if u := r.baseline(id, view); u != nil {
				r.bases = append(r.bases, u)
			}
		}
		slices.SortFunc(r.bases, func(a, b *stateUpdate) int { return int(a.id - b.id) })
		d := p.number - p.base
		p.tick = base.tick + d*m.pace
		p.tick += r.rareNumber(rareTick)
		m.pace = clamp((p.tick-base.tick)/d, 0, 1<<20)
		if p.number%64 == 0 && r.raw(16) != r.hash() {
			return "desync"
		}
	}
	if r.bit(&m.viewer[0]) {
		if !r.bit(&m.viewer[1]) {
			m.view = r.raw(16)
		}
		r.viewer = m.view
	}
	if !r.decodeInputs() || !r.updates() || !r.complete() {
		return "malformed"
	}
	slices.SortFunc(p.updates, func(a, b *stateUpdate) int { return int(a.id - b.id) })
	return ""
}

func (r *stateReceiver) hash() int64 {
	h := uint64(14695981039346656037)
	add := func(x uint64) {
		h = (h ^ x) * 1099511628211
		h ^= h >> 29
	}
	m := r.out.models
	for i := range m.fields {
		for _, v := range m.fields[i].bias {
			add(uint64(v))
		}
	}
	for i := range m.member {
		add(uint64(m.member[i].p<<16 | m.same[i].p))
	}
	for _, b := range r.bases {
		add(uint64(b.id<<8 | b.generation))
		var words []uint64
		at := int64(0)
		put := func(v uint64, n int64) {
			for i := range n {
				for int(at/64) >= len(words) {
					words = append(words, 0)
				}
				words[at/64] |= v >> i & 1 << (at % 64)
				at++
			}
		}
		for i := range r.fields {
			f := &r.fields[i]
			for k := range f.n {
				lo, n := f.lo, bitlen(f.hi-f.lo)
				if f.class == "quat" && k == 0 {
					lo, n = 0, 2
				}
				if f.class == "bytes" && k > 0 {
					lo, n = 0, 32
				}
				put(uint64(uint32(b.row[f.at+k]-lo)), n)
			}
		}
		for int64(len(words)) < at/64+1 {
			words = append(words, 0)
		}
		for _, w := range words {
			add(w)
		}
	}
	return int64(h >> 48)
}

func (r *stateReceiver) changedByte(differs, flip []chance, differed *int, was byte) byte {
	if !r.bit(&differs[*differed]) {
		*differed = 0
		return was
	}
	*differed = 1
	x := byte(0)
	for i := range 8 {
		if r.bit(&flip[i]) {
			x |= 1 << i
		}
	}
	return was ^ x
}

func (r *stateReceiver) decodeInputs() bool {
	p, m := r.out, r.out.models
	r.inputs, r.missing = map[int64][]byte{}, nil
	var older []byte
	expect := int64(1)
	if !p.keyframe {
		base := r.packets[p.base]
		older, expect = base.inputs, base.to-base.from
	}
	n := expect + r.rareNumber(rareTicks)
	if n < 0 || n > 32 {
		return false
	}
	if n > 0 {
		p.to = p.tick + 1 - r.rareNumber(rareBehind)
		p.from = p.to - n
	}
	for t := p.from; t < p.to; t++ {
		switch {
		case !r.bit(&m.input[0]):
			r.missing = append(r.missing, t)
		case r.bit(&m.input[1]):
			r.inputs[t] = older
		default:
			size := int64(len(older))
			if !r.bit(&m.input[2]) {
				size = r.rareNumber(rareBytes)
			}
			if size < 0 || size > 1024 {
				return false
			}
			var is []byte
			differed := 0
			for i := range int(size) {
				was := byte(0)
				if i < len(older) {
					was = older[i]
				}
				is = append(is, r.changedByte(m.differs, m.flip, &differed, was))
			}
			older = is
			r.inputs[t] = is
		}
	}
	p.inputs = older
	return true
}

func (r *stateReceiver) find(id int64) *stateUpdate {
	for _, b := range r.bases {
		if b.id == id {
			return b
		}
	}
	return nil
}

func (r *stateReceiver) age(b *stateUpdate) int {
	return int(min(bitlen(r.out.base-b.number), 7))
}

func (r *stateReceiver) place(row []int64) []int64 {
	if r.position < 0 {
		return nil
	}
	f := &r.fields[r.position]
	return row[f.at : f.at+f.n]
}

func (r *stateReceiver) updates() bool {
	m := r.out.models
	if r.viewer >= 0 {
		base := r.find(r.viewer)
		if r.bit(&m.viewer[2]) {
			if u := r.update(r.viewer, base); !u.gone {
				r.at = r.place(u.row)
			}
		} else if base != nil {
			r.at = r.place(base.row)
		}
	}
	k := 0
	for c := 0; r.bit(&m.more[c]); c = 1 {
		for {
			if k == len(r.bases) {
				return false
			}
			b := r.bases[k]
			k++
			if b.id != r.viewer && r.bit(&m.member[8*truth(b.rests)+int64(r.age(b))]) {
				r.update(b.id, b)
				break
			}
		}
	}
	id := int64(-1)
	for c := 2; r.bit(&m.more[c]); c = 3 {
		before := id
		if id += 1 + r.rareNumber(rareID); id <= before || id > 65535 || id == r.viewer || r.find(id) != nil {
			return false
		}
		r.update(id, nil)
	}
	return !r.bad
}

func (r *stateReceiver) update(id int64, base *stateUpdate) *stateUpdate {
	m := r.out.models
	u := &stateUpdate{object: object{id: id}, number: r.out.number, tick: r.out.tick, misses: make([]int64, len(r.fields)), trends: make([][3]int64, len(r.fields))}
	r.out.updates = append(r.out.updates, u)
	if u.gone = r.bit(&m.gone[truth(base != nil)]); u.gone {
		return u
	}
	if base != nil && !r.bit(&m.again[0]) {
		u.generation, u.row = base.generation, slices.Clone(base.row)
		r.delta(u, base)
	} else {
		u.generation = r.raw(8)
		r.whole(u)
	}
	u.zero, u.rests = r.zero(u.row), r.zero(u.row)
	if r.rest >= 0 {
		f := &r.fields[r.rest]
		u.rests = u.row[f.at] > f.lo
	}
	return u
}

func (r *stateReceiver) restFields() bool {
	return slices.ContainsFunc(r.fields, func(f stateField) bool { return f.atRest })
}

func (r *stateReceiver) zero(row []int64) bool {
	for i := range r.fields {
		if f := &r.fields[i]; f.atRest && slices.ContainsFunc(row[f.at:f.at+f.n], func(v int64) bool { return v != 0 }) {
			return false
		}
	}
	return r.restFields()
}

func (r *stateReceiver) whole(u *stateUpdate) {
	m := r.out.models
	none := r.restFields() && r.bit(&m.zero[2])
	for i := range r.fields {
		f := &r.fields[i]
		row := make([]int64, f.n)
		switch {
		case none && f.atRest:
		case f.class == "bytes":
			row[0] = r.uniform(f.lo, f.hi)
			for k := range row[0] {
				setByte(row, k, r.raw(8))
			}
		case i == r.position && r.at != nil && r.bit(&m.near[0]):
			for k := range row {
				row[k] = r.bounded(r.at[k]+r.rareNumber(rarePosition), f.lo, f.hi)
			}
		default:
			for k := range row {
				if f.class == "quat" && k == 0 {
					row[k] = r.uniform(0, 3)
				} else {
					row[k] = r.uniform(f.lo, f.hi)
				}
			}
		}
		u.row = append(u.row, row...)
	}
}

func (r *stateReceiver) delta(u, base *stateUpdate) {
	m := r.out.models
	was := truth(base.zero)
	c := 2*was + truth(base.rests)
	u.misses = slices.Clone(base.misses)
	if r.bit(&m.same[8*c+int64(r.age(base))]) {
		return
	}
	flag, text := 0, 0
	for i := range r.fields {
		if f := &r.fields[i]; f.class == "flags" {
			if r.bit(&m.flags[flag][c]) {
				if f.hi-f.lo == 1 {
					u.row[f.at] = f.lo + f.hi - base.row[f.at]
				} else {
					u.row[f.at] = r.uniform(f.lo, f.hi)
				}
			}
			flag++
		}
	}
	for i := range r.fields {
		if f := &r.fields[i]; f.class == "bytes" {
			if t := &m.texts[text]; r.bit(&t.changed[c]) {
				old, row := base.row[f.at:f.at+f.n], u.row[f.at:f.at+f.n]
				n := old[0]
				if r.bit(&t.length[0]) {
					n = r.uniform(f.lo, f.hi)
				}
				clear(row)
				row[0] = n
				differed := 0
				for k := range n {
					setByte(row, k, int64(r.changedByte(t.differs, t.flip, &differed, byte(getByte(old, k)))))
				}
			}
			text++
		}
	}
	none := base.zero
	if r.restFields() {
		none = r.bit(&m.zero[was])
	}
	elapsed := clamp(int64(int32(u.tick-base.tick)), 1, 120)
	r.logs = make([]int64, len(r.fields))
	for _, i := range r.order {
		f := &r.fields[i]
		switch {
		case none && f.atRest:
			clear(u.row[f.at : f.at+f.n])
		case r.bit(&m.fields[i].kept[was]):
		case f.class == "quat":
			r.quat(i, u, base, elapsed)
		default:
			r.motion(i, u, base, elapsed)
		}
	}
}

var stateWeights = [3][3][8]int64{
	{{-35600, 55000, 44600, -9600, 3500, 9900, 10100, 2200}, {-20900, 31300, 26300, -5600, 2600, 4500, 4700, 28900}, {-11600, 18400, 16800, 700, -600, 9300, 3900, 26500}},
	{{-22000, 80900, 0, 14900, 20100, 0, 0, 1400}, {-6300, 20900, 0, 3900, 4700, 0, 0, 50000}, {5600, 13600, 0, 15400, -4200, 0, 0, 31700}},
	{{3000, 30900, 0, 0, 27700, 0, 5800, -200}, {4900, 14000, 0, 0, 15900, 0, 700, 29100}, {-14400, 11200, 0, 0, 18000, 0, 5100, 41800}},
}

// scales is section 11.
type scales struct {
	r      *stateReceiver
	w      *[3][8]int64
	bias   *[3]int64
	common [3]int64
	missed int64
	scale  int64
}

func (r *stateReceiver) scales(i int, elapsed, unsteady, speed, learned, velocity int64) *scales {
	s := &scales{r: r, w: &stateWeights[r.fields[i].weights], bias: &r.out.models.fields[i].bias}
	for k, w := range s.w {
		s.common[k] = w[0]*2048 + w[1]*log(16*elapsed) + w[2]*unsteady + w[3]*speed + w[4]*learned + w[5]*velocity
	}
	return s
}

func (s *scales) residual(k int) int64 {
	s.scale = (s.common[k]+s.w[k][7]*log(s.missed))>>16 + s.bias[k]>>4
	return s.r.number(level(s.scale))
}

func (s *scales) learn(k int, miss int64) {
	s.bias[k] += clamp(log(miss)-s.scale, -2048, 2048) >> 2
	s.missed += abs(miss)
}

func (s *scales) end(i int, u *stateUpdate) {
	s.r.logs[i] = log(s.missed)
	u.misses[i] = clamp(log(s.missed)>>5, 0, 255)
}

func (r *stateReceiver) motion(i int, u, base *stateUpdate, elapsed int64) {
	f := &r.fields[i]
	a, cur := base.row[f.at:f.at+f.n], u.row[f.at:f.at+f.n]
	var to [3]int64
	unsteady, speed, velocity := int64(0), int64(0), int64(0)
	switch {
	case f.velocity >= 0:
		v := r.fields[f.velocity].at
		for k := range cur {
			then, is := base.row[v+k]*f.factor, u.row[v+k]*f.factor
			to[k] = clamp(((then+is)*elapsed>>1+is-then)>>12, -1<<40, 1<<40)
			speed += abs(is) * elapsed >> 12
			unsteady += abs(is-then) * elapsed >> 12
		}
		velocity = r.logs[f.velocity]
	case f.isVelocity:
		for k := range cur {
			to[k] = -a[k] * (min(elapsed, 60) * 39) >> 8
			speed += abs(a[k]) * 16
		}
	default:
		for k := range cur {
			to[k] = clamp(base.trends[i][k]*elapsed>>5, -1<<40, 1<<40)
			unsteady += abs(to[k])
		}
	}
	s := r.scales(i, elapsed, log(unsteady), log(speed), base.misses[i]<<5, velocity)
	turn := f.hi - f.lo + 1
	for k := range cur {
		guess := a[k]*16 + to[k]
		if f.class == "angle" {
			guess = 16*f.lo + mod(guess-16*f.lo, 16*turn)
		} else {
			guess = clamp(guess, 16*f.lo, 16*f.hi)
		}
		v := (guess + 8) >> 4
		d := s.residual(k)
		change := func() int64 { return cur[k] - a[k] }
		if f.class == "angle" {
			r.bad = r.bad || wrap(d, turn) != d
			cur[k] = f.lo + mod(v+d-f.lo, turn)
			change = func() int64 { return wrap(cur[k]-a[k], turn) }
		} else {
			cur[k] = r.bounded(v+d, f.lo, f.hi)
		}
		s.learn(k, 16*(v+d)-guess)
		if f.trends {
			u.trends[i][k] = clamp(change()*256/elapsed, -1<<30, 1<<30)
		}
	}
	s.end(i, u)
}

func (r *stateReceiver) quat(i int, u, base *stateUpdate, elapsed int64) {
	m, f := r.out.models, &r.fields[i]
	q := f.q.unpack(base.row[f.at : f.at+4])
	cur := u.row[f.at : f.at+4]
	unsteady, speed, velocity := int64(0), int64(0), int64(0)
	if f.velocity >= 0 {
		v := r.fields[f.velocity].at
		var turn [3]int64
		for k := range turn {
			then, is := base.row[v+k]*f.factor, u.row[v+k]*f.factor
			turn[k] = clamp(((then+is)*elapsed>>1+is-then)>>14, -1<<22, 1<<22)
			speed += min(abs(is)*elapsed>>14, 1<<22)
			unsteady += min(abs(is-then)*elapsed>>14, 1<<22)
		}
		q = multiply(rotation(turn), q)
		velocity = r.logs[f.velocity]
	}
	unsteady, speed = f.q.size(unsteady), f.q.size(speed)
	learned := base.misses[i] << 5
	doubt := clamp((unsteady+learned)>>9, 0, 7)
	order := []int{0, 1, 2, 3}
	slices.SortStableFunc(order, func(a, b int) int { return int(abs(q[b]) - abs(q[a])) })
	margin := f.q.size(abs(q[order[0]]) - abs(q[order[1]]))
	largest, other := order[0], r.bit(&m.largest[8*clamp((margin+256)*2>>8, 0, 39)+doubt])
	if other {
		if largest = order[1]; r.bit(&m.other[0]) {
			pair := []int{min(order[2], order[3]), max(order[2], order[3])}
			largest = pair[truth(r.bit(&m.other[1]))]
		}
	}
	cur[0] = int64(largest)
	if q[largest] < 0 {
		q = quat{-q[0], -q[1], -q[2], -q[3]}
	}
	s := r.scales(i, elapsed, unsteady, speed, learned, velocity)
	if other {
		for k := range s.common {
			s.common[k] += s.w[k][6] * 2048
		}
	}
	k := 0
	for e := range q {
		if e == largest {
			continue
		}
		guess := clamp(f.q.pack(q[e]), 16*f.lo, 16*f.hi)
		v := (guess + 8) >> 4
		d := s.residual(k)
		cur[k+1] = r.bounded(v+d, f.lo, f.hi)
		s.learn(k, 16*(v+d)-guess)
		k++
	}
	s.end(i, u)
}

func rotation(v [3]int64) quat {
	n := 0
	for max(abs(v[0]), abs(v[1]), abs(v[2]))>>n > 65536 {
		n++
	}
	q := exp([3]int64{v[0] >> n, v[1] >> n, v[2] >> n})
	for range n {
		q = multiply(q, q)
	}
	return q
}

// TestState decodes the golden sessions of package statesync.
func TestState(t *testing.T) {
	for _, file := range []string{"updates.golden", "kinds.golden"} {
		t.Run(file, func(t *testing.T) { playState(t, "../../../statesync/testdata/"+file) })
	}
}

func playState(t *testing.T, file string) {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := &stateReceiver{rest: -1}
	var last *statePacket
	var want []object
	components, compared, hashes := 0, 0, 0
	compare := func(line int) {
		if last == nil {
			return
		}
		var got []object
		for _, u := range last.updates {
			o := u.object
			if u.gone {
				o = object{id: u.id, generation: -1}
			}
			got = append(got, o)
		}
		if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("line %d: packet %d has %v\nwant %v", line, last.number, got, want)
		}
		compared += len(want)
		last, want = nil, nil
	}
	ints := func(words []string) (n []int64) {
		for _, w := range words {
			v, _ := strconv.ParseInt(w, 10, 64) // other words are not used
			n = append(n, v)
		}
		return n
	}
	index := func(name string) int {
		return slices.IndexFunc(r.fields, func(f stateField) bool { return f.name == name })
	}
	for i, line := range strings.Split(string(b), "\n") {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		n := ints(words)
		switch words[0] {
		case "field":
			r.fields = append(r.fields, stateField{field: field{class: words[2], n: int(n[3]), at: components, lo: n[4], hi: n[5]}, name: words[1], velocity: -1})
			components += int(n[3])
		case "velocity":
			f := &r.fields[index(words[1])]
			f.velocity, f.factor = index(words[2]), (n[3]+4)>>3
			if f.class == "quat" {
				f.factor = (n[3] + 32) >> 6
			}
			r.fields[f.velocity].isVelocity = true
		case "rest":
			r.rest = index(words[1])
		case "packet":
			compare(i)
			if r.initial == nil {
				r.init()
			}
			if words[3] == "lost" {
				continue
			}
			packet, err := hex.DecodeString(words[1])
			if err != nil {
				t.Fatal(err)
			}
			var reason string
			if last, reason = r.receive(packet); last == nil {
				if reason != words[3] {
					t.Fatalf("line %d: %s, want %s", i+1, reason, words[3])
				}
				continue
			}
			if last.tick != n[3] {
				t.Fatalf("line %d: tick %d, want %d", i+1, last.tick, n[3])
			}
			hashes += int(truth(last.number%64 == 0 && !last.keyframe))
		case "inputs":
			if got := hex.EncodeToString(r.inputs[n[1]]); words[2] != "missing" && !strings.Contains(got, words[3]) || words[2] == "missing" && !slices.Contains(r.missing, n[1]) {
				t.Fatalf("line %d: inputs %s", i+1, got)
			}
		case "object":
			o := object{id: n[1], generation: -1}
			if words[2] != "gone" {
				o = object{n[1], n[2], n[3:]}
			}
			want = append(want, o)
		}
	}
	if compared < 800 || hashes == 0 {
		t.Errorf("%d objects, %d hashes", compared, hashes)
	}
	t.Logf("%d objects", compared)
}
