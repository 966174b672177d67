package snapshot

import (
	"math/bits"
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
	"github.com/uplink-rpc/uplink/schema"
)

// load loads an object of the baseline that is not at rest, given its row there.
func (pc *payloadCodec) load(index int, base []int32) {
	o := &pc.object
	o.index, o.base = index, base
	o.moved, o.speedContext, o.resting = 0, 0, false
	if pc.refs.step == 0 {
		return // nothing is known of its motion
	}
	pc.references()
	for i, k := range [...]int{0, 1, refs - 1} {
		if pc.schema.differ(o.base, o.row[k]) {
			o.moved |= 1 << i
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

// references loads the object's rows in the references: those of the baseline if there are none.
func (pc *payloadCodec) references() {
	o := &pc.object
	if o.usual = pc.refs.step > 0; o.usual {
		for i := range o.row {
			o.row[i], o.lag[i] = pc.refs.row(i, o.index)
			o.usual = o.usual && o.lag[i] == int64(References[i])*pc.refs.step
		}
	} else {
		o.row, o.lag = [refs][]int32{o.base, o.base, o.base, o.base}, [refs]int64{}
	}
	if same := o.usual || pc.refs.step == 0; !same || !pc.scaled {
		pc.loadSpans()
		pc.scaled = same
	}
}

// code codes an object that is not at rest.
func (pc *payloadCodec) code(row []int32) {
	o := &pc.object
	if pc.Decoding && !pc.sameSet {
		copy(row, o.base)
	}
	o.flag = pc.schema.flagOf(o.base)
	moved := false
	pc.changes <<= 1
	if len(pc.schema.order) > 0 {
		ctx := (pc.changes>>1&3)<<6 | o.speedContext<<4 | o.moved<<1 | o.flag
		if moved = pc.bit(pc.schema.layout.changed+ctx, !pc.Decoding && pc.schema.differ(row, o.base)); moved {
			pc.changes |= 1
		}
	}
	pc.codeKept(row, moved)
	if !moved {
		return
	}
	if pc.refs.step == 0 {
		pc.references()
	}
	pc.codeMoved(row)
}

// codeKept codes the fields that are kept or replaced.
func (pc *payloadCodec) codeKept(row []int32, moved bool) {
	pc.codeFlags(row, moved)
	if len(pc.schema.strings) > 0 {
		pc.codeStrings(row, moved)
	}
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
		if !o.resting && pc.refs.step > 0 {
			if o.row[0][at] != v {
				ctx |= 32
			}
			if o.row[refs-1][at] != v {
				ctx |= 64
			}
		}
		if o.resting && !changed {
			ctx = flagContexts + ctx>>4&1
		}
		switch {
		case !pc.bit(pc.schema.layout.flags[n]+ctx, row[at] != v):
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
	o.logJerk, o.logJerk1, o.logSpeed = logZero, logZero, logZero
	pc.findNeighbor()
	pc.classify()
	pc.loadOrientations()
	left, some := len(pc.schema.order), false
	var counts [schema.ClassBytes]int // fields so far
	pc.nearby = append(pc.nearby, neighbor{})
	here := &pc.nearby[len(pc.nearby)-1]
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
			differs = pc.bit(pc.schema.layout.same[i]+ctx, !slices.Equal(cur, base))
		}
		some = some || differs
		n := counts[f.Class]
		counts[f.Class]++
		if differs {
			switch f.Class {
			case schema.ClassNumber:
				pc.codePosition(i, n, cur)
			case schema.ClassAngle:
				pc.codeAngle(i, pc.schema.layout.angles[n], cur)
			default:
				here.turn += pc.codeQuat(i, n, cur)
			}
		}
		if i == pc.schema.anchor {
			for k := range cur {
				here.position[k], now[k] = int64(base[k]), int64(cur[k])
			}
			here.miss[0], here.miss[1], here.miss[2], here.positionError = o.miss[0], o.miss[1], o.miss[2], o.missed
		}
	}
	pc.moving.add(now[0], now[1], now[2])
}

func putBytes(c []int32, b []byte) {
	clear(c)
	c[0] = int32(len(b))
	for i, v := range b {
		rangecoder.SetByte(c, i, v)
	}
}

func appendBytes(dst []byte, c []int32) []byte {
	for i := range int(c[0]) {
		dst = append(dst, rangecoder.Byte(c, i))
	}
	return dst
}

// codeStrings codes each byte string of an object in the baseline: kept or replaced.
func (pc *payloadCodec) codeStrings(row []int32, changed bool) {
	ctx := 0
	if changed {
		ctx = 1
	}
	for n, i := range pc.schema.strings {
		f, at := &pc.schema.fields[i], pc.schema.at[i]
		c, base, m := row[at:at+f.N], pc.object.base[at:at+f.N], pc.schema.layout.strings[n]
		if pc.bit(m+ctx, !slices.Equal(c, base)) {
			pc.codeBytes(f, m, c, base)
		}
	}
}

// codeBytes codes a byte string into c. Bytes that equal those of base take little space.
func (pc *payloadCodec) codeBytes(f *Field, m int, c, base []int32) {
	n := base[0]
	if pc.bit(m+2, c[0] != n) {
		n = pc.Uniform(c[0], f.Lo, f.Hi)
	}
	pc.StoreLength(c, n)
	last := 1
	for i := range int(n) {
		b := rangecoder.Byte(c, i)
		if i < int(base[0]) {
			old := rangecoder.Byte(base, i)
			if pc.bit(m+3+last, b == old) {
				last = 1
				pc.StoreByte(c, i, old)
				continue
			}
			last = 0
		}
		pc.StoreByte(c, i, byte(pc.Raw(uint64(b), 8)))
	}
}
