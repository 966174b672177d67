package adaptive

// Measure tells the meter what each part of a payload takes, and gives the bits of all.
// The arguments are those that [Coder.Encode] was given, with the same s and known, or
// that [Coder.Decode] took and filled. It codes the payload again, step by step as Encode
// does, and allocates nothing once its buffer has room.
func (c *Coder) Measure(to Meter, free uint, rows []*Row, newest, base uint64, hasBase bool, s *State, known *Frames) (total float64) {
	v, l := s.open(newest, base, hasBase, known)
	if l == nil {
		panic("adaptive: measure against a baseline that is not known")
	}
	c.m = s.m
	c.buf = c.buf[:0]
	if free > 0 {
		c.buf = append(c.buf, 0)
	}
	c.enc.Reset(c.buf, free)
	start := c.enc.Cost()
	c.cost = start
	c.encodeCount(len(rows), room(newest, base, hasBase))
	to.Count(c.spent())
	v.first = int64(newest) - int64(len(rows)) + 1
	ref := v.base
	for i, row := range rows {
		v.rows = rows[:i]
		seq := v.first + int64(i)
		if i == 0 && !hasBase {
			c.measureIntra(row, to)
		} else {
			c.fill(&v, seq, ref)
			c.measureRow(row, l, to)
		}
		ref = seq
	}
	c.buf = c.enc.Finish()
	return c.cost - start
}

// spent is what was coded since it was asked last.
func (c *Coder) spent() float64 {
	before := c.cost
	c.cost = c.enc.Cost()
	return c.cost - before
}

func (c *Coder) measureRow(row *Row, l *live, to Meter) {
	p := &c.p
	p.compare(row)
	c.s = surprise{}
	var last, bits changes
	for i := range c.m.groups {
		g := &c.m.groups[i]
		lg := &l.groups[i]
		x := p.changesOf(g) | last | bits
		changed := x&movedNow != 0
		if g.counts && lg.stepping() {
			changed = !c.m.steps(p, g, row)
		}
		c.enc.Bit(changed, 1<<16-lg.w.odds(lg.bias[p.class], x))
		to.Flags(g.field, c.spent())
		last = toldBy(changed)
		switch {
		case !changed:
			for k := range g.comps {
				to.Component(g.field, k, 0, ByRest, NoResidual)
			}
		case g.form == formNumbers:
			c.measureNumbers(row.Ints, g, l, to)
		case g.form == formQuat:
			c.measureQuat(row.Ints, g, l, to)
		case g.form == formBits:
			c.measureBits(row.Ints, g, l, to)
			bits = pressed
		default:
			l.counters.blobs[g.index].encode(&c.enc, g, row.Bytes[g.blob], p.base[g.blob], p.prev[g.blob])
			to.Contents(g.field, c.spent())
		}
	}
}

func (c *Coder) measureNumbers(ints []int32, g *group, l *live, to Meter) {
	p := &c.p
	var last changes
	any := false
	c.s.near = 0
	for k := range g.comps {
		cp, lc := &c.m.comps[g.first+k], &l.comps[g.first+k]
		v, base := ints[cp.at], p.b[cp.at]
		if g.comps > 1 && (any || k < g.comps-1) {
			x := changes(p.moved[cp.at]) | last
			c.enc.Bit(v != base, 1<<16-lc.flag.w.odds(lc.flag.bias, x))
			to.Flags(g.field, c.spent())
			last = toldBy(v != base)
			if v == base {
				to.Component(g.field, k, 0, ByRest, NoResidual)
				continue
			}
		}
		any = any || v != base
		if cp.list >= 0 && c.encodeListed(&l.lists[cp.list].frequent, v, base) {
			to.Component(g.field, k, c.spent(), ByValue, NoResidual)
			continue
		}
		pred, x := c.forecast(l, ints, g, cp, lc, k)
		r := wrapTo(int64(v)-int64(pred), cp.wrap)
		c.s.note(encodeResidual(&c.enc, c.m.tables, x, r), x.at)
		to.Component(g.field, k, c.spent(), p.predictor(g, lc), r)
	}
}

func (c *Coder) measureBits(ints []int32, g *group, l *live, to Meter) {
	bi := g.index
	for k := range g.comps {
		cp := &c.m.sets[g.first+k]
		bi = c.encodeSet(uint32(ints[cp.at]), cp, l, bi)
		to.Component(g.field, k, c.spent(), ByHold, NoResidual)
	}
}

func (c *Coder) measureQuat(ints []int32, g *group, l *live, to Meter) {
	p := &c.p
	want := l.wants(g, p)
	c.q.prepare(p, ints, g, want)
	c.encodeIndex(int(ints[g.at])&3, g, l)
	to.Flags(g.field, c.spent())
	c.q.express(g, int(ints[g.at])&3, want)
	c.s.near = 0
	for k := range g.comps {
		cp := &c.m.comps[g.first+k]
		lc := &l.comps[g.first+k]
		off := p.turn(&c.q.feats[k], g, lc)
		r := int64(ints[cp.at]) - int64(cp.fit(c.q.hold[k]+off))
		x := lc.expect(p, &c.s, off)
		c.s.note(encodeResidual(&c.enc, c.m.tables, x, r), x.at)
		to.Component(g.field, k, c.spent(), p.predictor(g, lc), r)
	}
}

func (c *Coder) measureIntra(row *Row, to Meter) {
	for i := range c.m.groups {
		g := &c.m.groups[i]
		switch g.form {
		case formNumbers:
			n := c.packLength(row.Ints, g)
			to.Flags(g.field, c.spent())
			for k := range g.comps {
				c.packNumber(row.Ints, g, &c.m.comps[g.first+k], n)
				to.Component(g.field, k, c.spent(), ByNone, NoResidual)
			}
		case formQuat:
			c.enc.Raw(uint64(row.Ints[g.at]), 2)
			to.Flags(g.field, c.spent())
			for k := range g.comps {
				c.enc.Raw(uint64(row.Ints[g.at+1+k]+g.limit), g.width)
				to.Component(g.field, k, c.spent(), ByNone, NoResidual)
			}
		case formBits:
			for k := range g.comps {
				c.packPlain(row.Ints, &c.m.sets[g.first+k])
				to.Component(g.field, k, c.spent(), ByNone, NoResidual)
			}
		case formBytes:
			c.packBytes(row.Bytes[g.blob], g)
			to.Contents(g.field, c.spent())
		}
	}
}
