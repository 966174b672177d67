package snapshots

import "slices"

type field struct {
	class  string // as in golden sessions
	n, at  int
	lo, hi int64
	q      quantizer
	c      []int64 // contexts
	same   []int64
	kind   int // 0: the first number, else 1
}

type axis struct{ floor, half int64 }

type physics struct {
	axes    [3]axis
	contact int64
}

type object struct {
	id, generation int64
	row            []int64
}

type set struct {
	objects []object
	physics physics
}

func (s *set) find(o *object) *object {
	for i := range s.objects {
		if p := &s.objects[i]; p.id == o.id && p.generation == o.generation {
			return p
		}
	}
	return nil
}

type neighbor struct {
	position, miss [3]int64
	missed, turn   int64
}

type payload struct {
	coder
	tab          *tables
	fields       []field
	order        []*field
	position     *field
	orientation  *field
	base         *set
	refs         [4]*set
	distance     int64
	step         int64
	m            *model
	obj          []int64 // contexts of the table object
	axes         [3]axis
	contact      int64
	changes      int64
	nearby       []neighbor
	moving       grid
	o, old       *object
	rows         [4][]int64
	lags         [4]int64
	moved, speed int64
	rest         bool
	motionState
}

const (
	changed   = 0
	disturbed = 256
	how       = 768
	quiet     = 1024
	removed   = 1027
	added     = 1029
	gapAt     = 1041
	physicsAt = 1053
)

// init finds the order and the kinds of the fields.
func (p *payload) init() {
	p.order, p.position, p.orientation = nil, nil, nil
	for _, class := range []string{"quat", "motion", "angle"} {
		for i := range p.fields {
			f := &p.fields[i]
			if f.class != class {
				continue
			}
			p.order = append(p.order, f)
			if class == "quat" {
				f.q = newQuantizer(f.lo, f.hi)
				if p.orientation == nil {
					p.orientation = f
				}
			}
			if class == "motion" {
				if f.kind = 1; p.position == nil {
					p.position, f.kind = f, 0
				}
			}
		}
	}
}

// references decodes the step.
func (p *payload) references(distance int64) int64 {
	if distance == 0 || p.decide(2048) {
		return 0
	}
	step := int64(1)
	for _, q := range []int64{4096, 32768, 32768} {
		if !p.decide(q) {
			break
		}
		step++
	}
	return step
}

func (p *payload) contexts() {
	i := 0
	if p.step > 0 {
		for i = 1; i < 5 && p.distance > []int64{0, 2, 4, 7, 11}[i]; i++ {
		}
	}
	p.m = &p.tab.Models[i]
	p.obj = slices.Clone(p.m.Object)
	even := func(n int) []int64 { return slices.Repeat([]int64{32770}, n) }
	for i := range p.fields {
		f := &p.fields[i]
		f.same = even(64)
		switch f.class {
		case "quat":
			f.c, f.same = slices.Clone(p.m.Quat), slices.Clone(p.m.Same[0])
		case "motion":
			f.c, f.same = slices.Clone(p.m.Number[f.kind]), slices.Clone(p.m.Same[1+f.kind])
		case "flags":
			f.c = slices.Clone(p.m.Integer)
		case "angle":
			f.c = slices.Clone(p.tab.Angle)
		default:
			f.c = even(5)
		}
	}
}

func (p *payload) place(row []int64) (at [3]int64) {
	if p.position != nil {
		copy(at[:], row[p.position.at:p.position.at+p.position.n])
	}
	return at
}

func (p *payload) codePhysics() (ph physics) {
	ph = p.base.physics
	if p.position != nil && p.decide(512) {
		number := func(v *int64, lo, hi int64) {
			u := p.count(p.obj[physicsAt:], 18)
			*v = p.bounded(*v+(u>>1^-(u&1)), lo, hi)
		}
		for k := range ph.axes {
			number(&ph.axes[k].floor, -(1<<30 - 1), 1<<30-1)
			number(&ph.axes[k].half, 0, 1<<24)
		}
		number(&ph.contact, 0, 16383)
	}
	p.axes, p.contact = ph.axes, ph.contact
	low := [3]int64{-1 << 40, -1 << 40, -1 << 40}
	if p.position != nil && ph.axes == [3]axis{} {
		low = [3]int64{}
		for i := range p.base.objects {
			for k, v := range p.place(p.base.objects[i].row) {
				if i == 0 || v < low[k] {
					low[k] = v
				}
			}
		}
	}
	for k := range p.axes {
		if p.axes[k].half == 0 {
			p.axes[k] = axis{low[k] * 16, 64}
		}
	}
	if p.contact == 0 {
		p.contact = 10240
	}
	return ph
}

// decode decodes the payload after its step. It returns nil if that is malformed.
func (p *payload) decode() *set {
	p.contexts()
	cur := &set{physics: p.codePhysics()}
	gone := p.bit(&p.obj[removed])
	for _, o := range p.base.objects {
		if !gone || !p.bit(&p.obj[removed+1]) {
			cur.objects = append(cur.objects, object{o.id, o.generation, slices.Clone(o.row)})
		}
	}
	n := p.count(p.obj[added:], 0)
	if n+int64(len(cur.objects)) > 4096 {
		return nil
	}
	id := int64(-1)
	for range n {
		id += 1 + p.count(p.obj[gapAt:], 6)
		i, found := slices.BinarySearchFunc(cur.objects, id, func(o object, id int64) int { return int(o.id - id) })
		if id > 65535 || found {
			return nil
		}
		cur.objects = slices.Insert(cur.objects, i, object{id, p.raw(8), nil})
	}
	p.changes, p.nearby, p.moving = 0, nil, grid{}
	var resting []*object
	for i := range cur.objects {
		p.o = &cur.objects[i]
		p.old = p.base.find(p.o)
		switch {
		case p.o.row == nil:
			p.absolute()
		case p.step > 0 && p.atRest():
			resting = append(resting, p.o)
		default:
			p.active()
		}
	}
	p.resting(resting)
	if !p.complete() {
		return nil
	}
	return cur
}

func (p *payload) atRest() bool {
	for _, i := range []int{0, 3} {
		if r := p.refs[i].find(p.o); r == nil || !slices.Equal(r.row, p.old.row) {
			return false
		}
	}
	return true
}

func (p *payload) absolute() {
	for i := range p.fields {
		f := &p.fields[i]
		row := make([]int64, f.n)
		switch f.class {
		case "bytes":
			row[0] = p.uniform(f.lo, f.hi)
			for k := range row[0] {
				setByte(row, k, p.raw(8))
			}
		case "quat":
			row[0] = p.uniform(0, 3)
			for k := 1; k < 4; k++ {
				row[k] = p.uniform(f.lo, f.hi)
			}
		default:
			for k := range row {
				row[k] = p.uniform(f.lo, f.hi)
			}
		}
		p.o.row = append(p.o.row, row...)
	}
}

func setByte(row []int64, k, b int64) {
	row[1+k/4] = int64(int32(uint32(row[1+k/4]) | uint32(b)<<(8*(k%4))))
}
func getByte(row []int64, k int64) int64 { return row[1+k/4] >> (8 * (k % 4)) & 255 }

func (p *payload) loadRows() {
	for i := range p.rows {
		p.rows[i], p.lags[i] = p.old.row, 0
		for j := i; j >= 0 && p.step > 0; j-- {
			if r := p.refs[j].find(p.o); r != nil {
				p.rows[i], p.lags[i] = r.row, []int64{1, 2, 4, 6}[j]*p.step
				break
			}
		}
	}
}

func (p *payload) flag(row []int64) int64 {
	for i := range p.fields {
		if f := &p.fields[i]; f.class == "flags" {
			return truth(row[f.at] != f.lo)
		}
	}
	return 0
}

func (p *payload) active() {
	p.loadRows()
	p.moved, p.speed, p.rest = 0, 0, false
	for i, k := range []int{0, 1, 3} {
		for _, f := range p.order {
			if !slices.Equal(p.old.row[f.at:f.at+f.n], p.rows[k][f.at:f.at+f.n]) {
				p.moved |= 1 << i
			}
		}
	}
	if p.position != nil {
		a, b, far := p.place(p.old.row), p.place(p.rows[3]), int64(0)
		for k := range a {
			far += abs(a[k] - b[k])
		}
		p.speed = min(bitlen(far)/2, 3)
	}
	p.changes <<= 1
	p.finish(changed + (p.changes>>1&3)<<6 + p.speed<<4 + p.moved<<1 + p.flag(p.old.row))
}

func (p *payload) finish(context int64) {
	m := len(p.order) > 0 && p.bit(&p.obj[context])
	p.changes |= truth(m)
	p.kept(m)
	if m {
		p.motion()
	}
}

func (p *payload) kept(m bool) {
	for i := range p.fields {
		f := &p.fields[i]
		if f.class != "flags" {
			continue
		}
		v := p.old.row[f.at]
		c := p.moved + 8*truth(m) + 16*truth(v != f.lo)
		if !p.rest {
			c += 32*truth(p.rows[0][f.at] != v) + 64*truth(p.rows[3][f.at] != v)
		} else if !m {
			c = 128 + c>>4&1
		}
		if p.bit(&f.c[c]) {
			if f.hi-f.lo == 1 {
				p.o.row[f.at] = f.lo + f.hi - v
			} else {
				p.o.row[f.at] = p.uniform(f.lo, f.hi)
			}
		}
	}
	for i := range p.fields {
		f := &p.fields[i]
		if f.class != "bytes" || !p.bit(&f.c[truth(m)]) {
			continue
		}
		old, row := p.old.row[f.at:f.at+f.n], p.o.row[f.at:f.at+f.n]
		n := old[0]
		if p.bit(&f.c[2]) {
			n = p.uniform(f.lo, f.hi)
		}
		clear(row)
		row[0] = n
		last := 1
		for k := range n {
			if k < old[0] {
				if p.bit(&f.c[3+last]) {
					setByte(row, k, getByte(old, k))
					last = 1
					continue
				}
				last = 0
			}
			setByte(row, k, p.raw(8))
		}
	}
}

func (p *payload) resting(list []*object) {
	if len(list) == 0 {
		return
	}
	c := clamp(p.contact, 0, 11520)
	reach := (256 + c%256) << (c / 256) >> 4
	p.moving.begin(reach)
	var still []*object
	for _, o := range list {
		p.o, p.old = o, p.base.find(o)
		near, f := reach, p.flag(p.old.row)
		if p.position != nil {
			near = p.moving.closest(p.place(p.old.row))
		}
		if near == reach && f == 0 {
			still = append(still, o)
			continue
		}
		k := int64(123)
		if near < reach {
			k = clamp((log(near)+256)*2/256+1, 1, 127)
		}
		if p.bit(&p.obj[disturbed+4*k+2*(p.changes&1)+f]) {
			p.disturbed(k)
		} else {
			p.changes <<= 1
		}
	}
	if len(still) == 0 || !p.bit(&p.obj[quiet]) {
		return
	}
	for block := range slices.Chunk(still, 32) {
		if !p.bit(&p.obj[quiet+1]) {
			continue
		}
		for _, o := range block {
			if p.bit(&p.obj[quiet+2]) {
				p.o, p.old = o, p.base.find(o)
				p.disturbed(123)
			}
		}
	}
}

func (p *payload) disturbed(k int64) {
	p.moved, p.speed, p.rest = 0, 0, true
	p.loadRows()
	p.changes <<= 1
	p.finish(how + 2*k + p.flag(p.old.row))
}

type grid struct {
	all                 [][3]int64
	lists               [][]int
	reach, inverse, bit int64
}

func (g *grid) begin(reach int64) {
	g.reach = reach
	if len(g.all) <= 6 {
		return
	}
	g.inverse = 1 << 24 / (isqrt(4*reach) + 1)
	g.bit = max(bitlen(int64(len(g.all)))+1, 5)
	g.lists = make([][]int, 1<<g.bit)
	for i := range g.all {
		g.enter(i)
	}
}

func hash(c [3]int64) uint64 {
	return uint64(c[0])*0xd1b54a32d192ed03 + uint64(c[1])*0xabc98388fb8fac03 + uint64(c[2])*0x8cb92ba72f3d8dd7
}

func (g *grid) enter(i int) {
	var c [3]int64
	for k, v := range g.all[i] {
		c[k] = v * g.inverse >> 25
	}
	h := hash(c) >> (64 - g.bit)
	g.lists[h] = append(g.lists[h], i)
}

func (g *grid) add(p [3]int64) {
	g.all = append(g.all, p)
	if g.lists != nil {
		g.enter(len(g.all) - 1)
	} else if g.reach > 0 {
		g.begin(g.reach)
	}
}

func (g *grid) closest(p [3]int64) int64 {
	least, left := g.reach, 64
	see := func(i int) {
		x, y, z := g.all[i][0]-p[0], g.all[i][1]-p[1], g.all[i][2]-p[2]
		least = min(least, (x*x+y*y+z*z)>>2)
	}
	if g.lists == nil {
		for i := range g.all {
			see(i)
		}
		return least
	}
	var low [3]int64
	for k, v := range p {
		low[k] = ((v * g.inverse >> 24) - 1) >> 1
	}
	for i := range int64(8) {
		l := g.lists[hash([3]int64{low[0] + i&1, low[1] + i>>1&1, low[2] + i>>2})>>(64-g.bit)]
		for j := len(l) - 1; j >= 0 && left > 0; j-- {
			see(l[j])
			left--
		}
	}
	return least
}
