package snapshots

import "slices"

type motionState struct {
	near                        *neighbor
	gap                         int64
	class                       int
	ground                      int
	v                           [3]spans
	drift, change               [3]int64
	logJerk, logJerk1, logSpeed int64
	jerk, jerk1                 int64
	from                        quat
	matBefore, matBase, matNow  matrix
	turn, miss                  [3]int64
	missed, turned              int64
}

type spans struct{ v0, v1, v2, v3, v01, v12, v23 int64 }

func (p *payload) motion() {
	p.loadRows()
	p.miss, p.missed, p.turned = [3]int64{}, 0, 0
	p.findNear()
	p.classify()
	p.loadOrientations()
	some := false
	here := neighbor{position: p.place(p.old.row)}
	for i, f := range p.order {
		differs := true
		if some || i < len(p.order)-1 {
			differs = p.bit(&f.same[p.moved+8*truth(some)+16*p.speed])
		}
		some = some || differs
		if !differs {
			continue
		}
		switch f.class {
		case "quat":
			here.turn += p.quat(f)
		case "motion":
			p.number(f)
		default:
			p.angle(f)
		}
	}
	here.miss, here.missed = p.miss, p.missed
	p.nearby = append(p.nearby, here)
	p.moving.add(p.place(p.o.row))
}

func (p *payload) findNear() {
	p.near = nil
	if p.position == nil {
		return
	}
	at, least := p.place(p.old.row), int64(1)<<62
	for i := max(0, len(p.nearby)-16); i < len(p.nearby); i++ {
		d := int64(0)
		for k, v := range p.nearby[i].position {
			d += (v - at[k]) * (v - at[k]) >> 2
		}
		if d < least {
			least, p.near = d, &p.nearby[i]
		}
	}
	p.gap = log(least<<5) / 2
}

func (p *payload) measure(f *field) {
	var jerk, jerk1, speed int64
	for k := range f.n {
		at := f.at + k
		base := p.old.row[at]
		span := func(newer, older int) int64 {
			v, lag := base, p.lags[older]
			if newer >= 0 && p.lags[newer] != lag {
				v, lag = p.rows[newer][at], lag-p.lags[newer]
			}
			return (v - p.rows[older][at]) * (16 * p.distance * part(lag)) >> 16
		}
		v := &p.v[k]
		*v = spans{span(-1, 0), span(-1, 1), span(-1, 2), span(-1, 3), span(0, 1), span(1, 2), span(2, 3)}
		jerk += abs(v.v1-2*v.v12+v.v23) * 2
		jerk1 += abs(v.v0 - 2*v.v01 + v.v12)
		speed += abs(v.v1)
	}
	p.jerk, p.jerk1 = jerk*part(p.distance)>>16, jerk1*part(p.distance)>>16
	p.logJerk, p.logJerk1, p.logSpeed = log(p.jerk), log(p.jerk1), log(speed)
}

func (p *payload) classify() {
	p.drift, p.change, p.class = [3]int64{}, [3]int64{}, 0
	p.logJerk, p.logJerk1, p.logSpeed = log(0), log(0), log(0)
	if p.moved == 0 {
		p.class = 3
	}
	if p.position == nil {
		return
	}
	p.measure(p.position)
	for k := range p.position.n {
		p.drift[k], p.change[k] = p.v[k].v2, p.v[k].v0-p.v[k].v2
	}
	if p.moved != 7 {
		return
	}
	switch {
	case p.jerk1 >= 320:
		p.class = 5
	case p.jerk >= 320:
		p.class = 4
	case p.jerk < 80 && p.jerk1 <= 80:
		p.class = 1
	default:
		p.class = 2
	}
}

func (p *payload) loadOrientations() {
	p.ground = -1
	f := p.orientation
	if f == nil {
		return
	}
	p.from = f.q.unpack(p.old.row[f.at : f.at+4])
	p.matBase = matrixOf(p.from)
	p.matNow, p.turn = p.matBase, [3]int64{}
	p.matBefore = matrixOf(f.q.unpack(p.rows[2][f.at : f.at+4]))
	if p.position == nil {
		return
	}
	least := int64(0)
	for k := range p.position.n {
		a := &p.axes[k]
		h := abs(a.above(&p.matBase, k, 16*p.old.row[p.position.at+k]))
		if h < 16+a.half>>4 && (p.ground < 0 || h < least) {
			p.ground, least = k, h
		}
	}
}

func (p *payload) quat(f *field) int64 {
	g, row := &f.q, p.o.row[f.at:f.at+4]
	from := g.unpack(p.old.row[f.at : f.at+4])
	var v [4][3]int64
	for i := range v {
		if p.lags[i] == 0 {
			continue
		}
		v[i] = between(g.unpack(p.rows[i][f.at:f.at+4]), from)
		for k := range v[i] {
			v[i][k] = v[i][k] * (p.distance * part(p.lags[i])) >> 16
		}
	}
	c, unit := p.class, int64(128)
	if p.ground >= 0 {
		c, unit = c+7, 1048576/(p.axes[p.ground].half+1)
	}
	var guess [3]int64
	var unsteady, angular, j, j1 int64
	for k := range guess {
		s := v[2][k]
		x := vec{s, v[0][k] - s, v[1][k] - s, s - v[3][k]}
		for i := range p.drift {
			x[4+i], x[7+i] = p.drift[i]*unit>>4, p.change[i]*unit>>4
		}
		guess[k] = predict(&p.m.Turn[k][c], &x)
		unsteady += abs(v[1][k] - v[3][k])
		angular += abs(v[1][k])
		j += abs(x[3])
		j1 += abs(x[1])
	}
	q := multiply(exp(guess), from)
	y := vec{
		0: p.logJerk, 1: p.logJerk1, 2: g.size(unsteady), 3: g.size(angular), 7: 2048,
		10: p.logSpeed, 11: log(p.missed), 12: g.size(j), 13: g.size(j1),
	}
	if p.near != nil {
		y[5] = log(p.near.turn)
	}
	if p.moved == 0 {
		y[8] = 2048
	}
	by := []int{0, 1, 2, 3}
	slices.SortStableFunc(by, func(a, b int) int { return int(abs(q[b]) - abs(q[a])) })
	margin := g.size(abs(q[by[0]]) - abs(q[by[1]]))
	largest := by[0]
	if p.bit(&f.c[8*clamp((margin+256)*2>>8, 0, 39)+clamp((y[2]+y[11])>>9, 0, 7)]) {
		y[9] = 2048
		if largest = by[1]; p.bit(&f.c[320]) {
			if largest = min(by[2], by[3]); p.bit(&f.c[321]) {
				largest = max(by[2], by[3])
			}
		}
	}
	row[0] = int64(largest)
	if q[largest] < 0 {
		q = quat{-q[0], -q[1], -q[2], -q[3]}
	}
	at := f.c[322+697*truth(c >= 7):]
	m, k := int64(0), 0
	for i := range q {
		if i == largest {
			continue
		}
		to := g.pack(q[i])
		far := to - g.pack(from[i])
		y[4], y[14] = log(m), log(far)
		var e int64
		row[k+1], e = p.component(at, level(predict(&p.m.TurnScale[k][c], &y)), int64(9*k)+sign3(far), clamp(to, 16*f.lo, 16*f.hi), f.lo, f.hi)
		m += abs(e)
		k++
	}
	if f == p.orientation {
		now := g.unpack(row)
		p.matNow, p.turn, p.turned = matrixOf(now), between(from, now), m
	}
	return m
}

func (p *payload) number(f *field) {
	isPosition := f == p.position
	gc := p.class
	if !isPosition {
		p.measure(f)
	} else if p.ground >= 0 {
		gc += 7
	}
	sum := int64(0)
	for k := range f.n {
		sum += abs(p.v[k].v1 - p.v[k].v3)
	}
	y := vec{0: p.logJerk, 1: p.logJerk1, 2: log(sum), 3: p.logSpeed, 5: log(p.turned), 7: 2048}
	y[15] = y[5] * y[5] >> 11
	if p.near != nil {
		y[13], y[10] = log(p.near.missed), p.gap
	} else {
		y[9] = 2048
	}
	var e [3]int64
	m := int64(0)
	for k := range f.n {
		b, v := 16*p.old.row[f.at+k], &p.v[k]
		g, out, w := v.v2, int64(0), &p.m.Position[f.kind][k][p.class]
		x := vec{g, v.v0 - g, v.v01 - g, g - v.v23, 160}
		if p.near != nil {
			x[5] = p.near.miss[k]
		}
		if isPosition {
			if out = max(0, p.axes[k].floor-b-g); p.orientation != nil {
				out = max(0, -p.axes[k].above(&p.matNow, k, b+g))
			}
			x[6] = out
			if p.ground >= 0 {
				w = p.roll(f, &x, k, b)
			} else if out > 0 && p.class != 3 {
				w = &p.m.Position[f.kind][k][6]
			}
		}
		copy(x[7:], e[:k])
		guess := clamp(b+predict(w, &x), 16*f.lo, 16*f.hi)
		y[4], y[8], y[11], y[12] = log(m), 2048*truth(p.class == 3), log(g), log(out)
		y[14] = max(y[5], y[12])
		s := predict(&p.m.Scale[f.kind][k][gc], &y)
		sign := int64(9*k) + 3*sign3(x[1]) + sign3(g)
		if isPosition {
			h, r := guess-p.axes[k].floor, int64(16)<<clamp(s/256+1, 0, 20)
			if h < r/4 {
				sign += 54
			} else if h < r {
				sign += 27
			}
		}
		at := f.c[697*(int64(k>>1)+2*truth(gc >= 7)):]
		p.o.row[f.at+k], e[k] = p.component(at, level(s), sign, guess, f.lo, f.hi)
		m += abs(e[k])
	}
	if isPosition {
		p.miss, p.missed = e, m
	}
}

func (p *payload) roll(f *field, x *vec, k int, b int64) *vec {
	a := p.ground
	half, g, back := p.axes[a].half, [7]int{0, 1, 2, 0, 3, 4, 4}[p.class], int64(0)
	if p.lags[2] > 0 {
		back = p.distance / p.lags[2]
	}
	for i := range p.turn {
		x[13+i] = p.turn[i] * half >> 16
	}
	if k == a {
		x[10] = half * (p.matNow.extent(k) - p.matBase.extent(k)) >> 16
		x[11] = (half * (p.matBase.extent(k) - p.matBefore.extent(k)) >> 16) * back
		x[12] = -p.axes[k].above(&p.matBase, k, b)
		return &p.m.Roll[f.kind][0][g]
	}
	was, is := p.matBase.corner(a), p.matNow.corner(a)
	x[10] = -half * move(&p.matBase, &p.matNow, was, k) >> 16
	x[11] = (-half * move(&p.matBefore, &p.matBase, was, k) >> 16) * back
	x[12] = -half * move(&p.matBase, &p.matNow, is, k) >> 16
	return &p.m.Roll[f.kind][1+k&1][g]
}

func (p *payload) angle(f *field) {
	turn := f.hi - f.lo + 1
	change := func(d, lag int64) int64 {
		if lag <= 0 {
			return 0
		}
		return wrap(d, turn) * p.distance / lag
	}
	for k := range f.n {
		at := f.at + k
		b, r1, r2 := p.old.row[at], p.rows[1][at], p.rows[2][at]
		now, before := change(b-r1, p.lags[1]), change(r1-r2, p.lags[2]-p.lags[1])
		guess, miss := b, abs(now)
		if on := abs(now - before); on < miss {
			guess, miss = b+now, on
		}
		d := p.integer(f.c, level(log(16*miss)), int64(9*k)+3*sign3(now)+sign3(before))
		p.bad = p.bad || d != wrap(d, turn)
		p.o.row[at] = f.lo + mod(guess+d-f.lo, turn)
	}
}
