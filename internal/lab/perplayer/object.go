package perplayer

import (
	"math/bits"
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
	"github.com/uplink-rpc/uplink/schema"
)

// load loads an object of the baseline that is not at rest.
func (pc *payloadCodec) load(index int) {
	o := &pc.object
	o.index, o.base = index, pc.refs.base.Row(index)
	o.moved, o.speedContext, o.resting, o.age = 0, 0, false, 0
	pc.references()
	for i, k := range [...]int{0, 1, refs - 1} {
		if pc.schema.differ(o.base, o.row[k]) {
			o.moved |= 1 << i
		}
	}
	if o.moved&1 == 0 {
		for i := 0; i < refs && !pc.schema.differ(o.base, o.row[i]); i++ {
			o.age = o.lag[i]
		}
	}
	if pc.schema.anchor < 0 {
		return
	}
	at, far := pc.schema.at[pc.schema.anchor], int64(0)
	for k := at; k < at+pc.schema.fields[pc.schema.anchor].N; k++ {
		far += fixed.Abs(int64(o.base[k]) - int64(o.row[refs-1][k]))
	}
	o.speedContext = min(bits.Len64(uint64(far))/2, 3)
}

func (pc *payloadCodec) references() {
	o := &pc.object
	for i := range o.row {
		o.row[i], o.lag[i] = pc.refs.row(i, o.index)
	}
}

func (pc *payloadCodec) code(row []int32) {
	o := &pc.object
	if pc.Decoding && !pc.sameSet {
		copy(row, o.base)
	}
	o.flag = pc.flagOf(o.base)
	changed := false
	if len(pc.schema.order) > 0 {
		c := &pc.state.changed[(pc.changes&3)<<6|o.speedContext<<4|o.moved<<1|o.flag]
		if o.resting {
			c = &pc.state.disturbed[o.contactContext()][pc.changes&1<<1|o.flag]
		}
		changed = pc.Bit(c, !pc.Decoding && pc.schema.differ(row, o.base))
		pc.changes = pc.changes << 1
		if changed {
			pc.changes |= 1
		}
	}
	pc.updateAge(changed)
	pc.codeFlags(row, changed)
	pc.codeStrings(row, changed)
	if !changed {
		return
	}
	if o.resting {
		pc.references()
		pc.learnContact()
	}
	pc.codeMoved(row)
}

// flagOf returns 1 if the object's first integer field is not at its minimum.
func (pc *payloadCodec) flagOf(row []int32) int {
	if len(pc.schema.flags) == 0 {
		return 0
	}
	if i := pc.schema.flags[0]; row[pc.schema.at[i]] == pc.schema.fields[i].Lo {
		return 0
	}
	return 1
}

func (pc *payloadCodec) codeFlags(row []int32, changed bool) {
	o := &pc.object
	for n, i := range pc.schema.flags {
		f, at := &pc.schema.fields[i], pc.schema.at[i]
		v := o.base[at]
		ctx := o.moved
		if changed {
			ctx |= 8
		}
		if v != f.Lo {
			ctx |= 16
		}
		if !o.resting && o.row[0][at] != v {
			ctx |= 32
		}
		if !o.resting && o.row[refs-1][at] != v {
			ctx |= 64
		}
		c := &pc.state.flags[n][ctx]
		if o.resting && !changed {
			c = &pc.state.restFlags[n][min(o.age/ageStep, ageContexts-1)][ctx>>4&1]
		}
		switch {
		case !pc.Bit(c, row[at] != v):
		case int64(f.Hi)-int64(f.Lo) == 1:
			pc.Store(&row[at], f.Lo+f.Hi-v)
		default:
			pc.Store(&row[at], pc.Uniform(row[at], f.Lo, f.Hi))
		}
	}
}

// codeMoved codes the predicted fields of an object that changed.
func (pc *payloadCodec) codeMoved(row []int32) {
	o := &pc.object
	o.miss, o.missed, o.jerk, o.jerk1, o.speed = [3]int64{}, 0, 0, 0, 0
	pc.loadSpans()
	pc.findNeighbor()
	pc.classify()
	pc.loadOrientations()
	left, some := len(pc.schema.order), false
	var counts [schema.ClassBytes]int // fields so far
	var here neighbor
	var now [3]int64
	for _, i := range pc.schema.order {
		f, at := &pc.schema.fields[i], pc.schema.at[i]
		left--
		cur, base := row[at:at+f.N], o.base[at:at+f.N]
		differs := true
		if some || left > 0 {
			ctx := o.moved | o.speedContext<<4
			if some {
				ctx |= 8
			}
			differs = pc.Bit(&pc.state.same[i][ctx], !slices.Equal(cur, base))
		}
		some = some || differs
		n := counts[f.Class]
		counts[f.Class]++
		if differs {
			switch f.Class {
			case schema.ClassNumber:
				pc.codePosition(i, &pc.state.motion[n], cur)
			case schema.ClassAngle:
				pc.codeAngle(i, &pc.state.angles[n], cur)
			default:
				here.turn += pc.codeQuat(i, n, cur)
			}
		}
		if i == pc.schema.anchor {
			for k := range cur {
				here.position[k], now[k] = int64(base[k]), int64(cur[k])
			}
			here.miss, here.positionError = o.miss, o.missed
		}
	}
	pc.nearby = append(pc.nearby, here)
	pc.moving.add(now)
}

// codeStrings codes each byte string of an object in the baseline: kept or replaced.
func (pc *payloadCodec) codeStrings(row []int32, changed bool) {
	ctx := 0
	if changed {
		ctx = 1
	}
	for n, i := range pc.schema.strings {
		f, at := &pc.schema.fields[i], pc.schema.at[i]
		c, base, m := row[at:at+f.N], pc.object.base[at:at+f.N], &pc.state.strings[n]
		if pc.Bit(&m.replaced[ctx], !slices.Equal(c, base)) {
			pc.codeBytes(f, m, c, base)
		}
	}
}

// codeBytes codes a byte string into c. Bytes that equal those of base take little space.
func (pc *payloadCodec) codeBytes(f *Field, m *bytesModel, c, base []int32) {
	n := base[0]
	if pc.Bit(&m.length, c[0] != n) {
		n = pc.Uniform(c[0], f.Lo, f.Hi)
	}
	pc.StoreLength(c, n)
	last := 1
	for i := range int(n) {
		b := rangecoder.Byte(c, i)
		if i < int(base[0]) {
			old := rangecoder.Byte(base, i)
			if pc.Bit(&m.kept[last], b == old) {
				last = 1
				pc.StoreByte(c, i, old)
				continue
			}
			last = 0
		}
		pc.StoreByte(c, i, byte(pc.Raw(uint64(b), 8)))
	}
}
