package snapshots

import (
	"slices"
)

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
	return !r.bad && len(r.out.updates) <= 255
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
