package snapshots

import (
	"slices"
)

// receive decodes a packet. It returns nil and the reason if there is no update.
func (r *stateReceiver) receive(b []byte) (*statePacket, string) {
	next := int64(0)
	if r.any {
		next = r.newest + 1
	}
	word := int64(b[0]) | int64(b[1])<<8
	distance, low, width, epoch, tick := word&63, word>>6, int64(10), int64(0), int64(0)
	size := len(b)
	b = b[2:]
	if distance > 56 || size > 16_384 {
		return nil, "malformed"
	}
	if distance == 0 {
		if b[0] > 63 {
			return nil, "malformed"
		}
		low, width, epoch, b = low|int64(b[0])<<10, 16, int64(b[1]), b[2:]
		v := uint64(0)
		for i := 0; ; i++ {
			v |= uint64(b[0]&127) << (7 * i)
			last := b[0]
			b = b[1:]
			if last < 128 {
				if i > 0 && last == 0 || i > 7 || v>>1 > 1<<53 {
					return nil, "malformed"
				}
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
		if abs(p.tick) > 1<<53 {
			return "malformed"
		}
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

// areInputs reports whether bytes are those of players with ascending numbers.
func areInputs(b []byte) bool {
	for before := -1; len(b) > 0; {
		if len(b) < 2 || int(b[0]) <= before || len(b) < 2+int(b[1]) {
			return false
		}
		before, b = int(b[0]), b[2+int(b[1]):]
	}
	return true
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
			if !areInputs(is) {
				return false
			}
			older = is
			r.inputs[t] = is
		}
	}
	p.inputs = older
	return true
}
