package snapbench

import (
	"errors"
	"math/bits"
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/bitio"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// packing selects the techniques of manual bit packing. Each technique requires the previous ones.
type packing struct {
	// changed sends one bit per object, and only the objects that differ from the baseline.
	changed bool
	// indices sends the distance from each changed object to the previous one if this is shorter.
	indices bool
	// positions sends small changes of numbers as differences.
	positions bool
	// orientations sends small changes of the smallest three as differences.
	orientations bool
	// same sends one bit per field that tells whether the field changed.
	same bool
	// atRest sends one bit per field of numbers, except the first, that tells whether the field is
	// zero.
	atRest bool
}

var (
	errObjects = errors.New("snapbench: not the objects of the baseline")
	errPacked  = errors.New("snapbench: malformed packed snapshot")
)

// packer packs snapshots by fixed rules, without prediction or models, for comparison with the
// adaptive codec.
type packer struct {
	fields  []snapshot.Field
	use     packing
	w       bitio.Writer
	r       bitio.Reader
	reading bool
	bad     bool
	changed []int
}

func newPacker(s *snapshot.Schema, use packing) *packer {
	return &packer{fields: s.Fields(), use: use}
}

// append appends cur, packed against base. Both must have the same objects.
func (p *packer) append(dst []byte, cur, base *snapshot.Set) ([]byte, error) {
	if !sameObjects(cur, base) {
		return dst, errObjects
	}
	p.w.Reset(dst)
	p.reading = false
	p.changed = p.changed[:0]
	for i := range cur.Len() {
		if !p.use.changed || !slices.Equal(cur.Row(i), base.Row(i)) {
			p.changed = append(p.changed, i)
		}
	}
	p.which(cur.Len())
	for _, i := range p.changed {
		p.code(cur.Row(i), base.Row(i))
	}
	return p.w.Bytes(), nil
}

// decode unpacks src into cur. Any input is safe.
func (p *packer) decode(cur, base *snapshot.Set, src []byte) error {
	p.r.Reset(src)
	p.reading, p.bad = true, false
	cur.CopyFrom(base)
	p.which(cur.Len())
	for _, i := range p.changed {
		p.code(cur.Row(i), base.Row(i))
	}
	p.r.Align()
	if err := p.r.Err(); err != nil || p.bad || p.r.Len() > 0 {
		return errPacked
	}
	return nil
}

func sameObjects(a, b *snapshot.Set) bool {
	for i := range min(a.Len(), b.Len()) {
		if a.Object(i) != b.Object(i) {
			return false
		}
	}
	return a.Len() == b.Len()
}

func (p *packer) bits(v uint64, n uint) uint64 {
	if p.reading {
		return p.r.ReadBits(n)
	}
	p.w.WriteBits(v, n)
	return v
}

func (p *packer) bit(b bool) bool {
	v := uint64(0)
	if b {
		v = 1
	}
	return p.bits(v, 1) != 0
}

// which codes which of n objects have changed.
func (p *packer) which(n int) {
	if !p.use.changed {
		p.changed = p.changed[:0]
		for i := range n {
			p.changed = append(p.changed, i)
		}
		return
	}
	if p.use.indices && p.bit(p.indexBits(n) < n) {
		p.indices(n)
		return
	}
	k := 0
	for i := range n {
		is := !p.reading && k < len(p.changed) && p.changed[k] == i
		if is {
			k++
		}
		if p.bit(is) && p.reading {
			p.changed = append(p.changed[:k], i)
			k++
		}
	}
	p.changed = p.changed[:k]
}

func (p *packer) indexBits(n int) int {
	size, before := bits.Len(uint(n)), -1
	for _, i := range p.changed {
		switch d := i - before; {
		case d <= 8:
			size += 4
		case d <= 40:
			size += 7
		default:
			size += 2 + bits.Len(uint(n))
		}
		before = i
	}
	return size
}

func (p *packer) indices(n int) {
	width := uint(bits.Len(uint(n)))
	count := int(p.bits(uint64(len(p.changed)), width))
	if p.reading {
		p.changed = p.changed[:0]
		p.bad = p.bad || count > n
	}
	before := -1
	for k := 0; k < count && !p.bad; k++ {
		d := 0
		if !p.reading {
			d = p.changed[k] - before
		}
		switch {
		case p.bit(d <= 8):
			d = int(p.bits(uint64(d-1), 3)) + 1
		case p.bit(d <= 40):
			d = int(p.bits(uint64(d-9), 5)) + 9
		default:
			d = int(p.bits(uint64(d), width))
		}
		before += d
		if p.reading {
			if d == 0 || before >= n {
				p.bad = true
				return
			}
			p.changed = append(p.changed, before)
		}
	}
}

// code packs or unpacks one object. All fields of numbers except the first are 0 at rest.
func (p *packer) code(cur, base []int32) {
	first := true
	for i := range p.fields {
		f := &p.fields[i]
		number, quat := f.Class == schema.ClassNumber, f.Class == schema.ClassQuat
		c, b := cur[:f.N], base[:f.N]
		cur, base = cur[f.N:], base[f.N:]
		canRest := number && !first && f.Lo <= 0 && f.Hi >= 0
		first = first && !number
		if p.use.same && (number || quat) && p.bit(slices.Equal(c, b)) {
			copy(c, b)
			continue
		}
		if p.use.atRest && canRest && p.rest(c) {
			continue
		}
		short := number && p.use.positions && p.small(c, b, 5, 9) ||
			quat && p.use.orientations && p.largest(c, b) && p.small(c[1:], b[1:], 5, 8)
		if !short {
			p.absolute(f, c)
		}
		p.check(f, c)
	}
}

func (p *packer) rest(c []int32) bool {
	if !p.bit(!slices.ContainsFunc(c, func(v int32) bool { return v != 0 })) {
		return false
	}
	clear(c)
	return true
}

// largest codes whether the index of the largest component equals that of the baseline.
func (p *packer) largest(c, b []int32) bool {
	if !p.bit(c[0] == b[0]) {
		return false
	}
	c[0] = b[0]
	return true
}

// small codes each difference in few or more bits, if all fit. It reports whether they fit.
func (p *packer) small(c, b []int32, few, more uint) bool {
	fit := true
	for k := range c {
		d := int64(c[k]) - int64(b[k])
		near, far := int64(1)<<(few-1), int64(1)<<(more-1)+int64(1)<<(few-1)
		fit = fit && (d >= -near && d < near || d >= -far && d < far)
	}
	if !p.bit(fit) {
		return false
	}
	for k := range c {
		d := int64(c[k]) - int64(b[k])
		near, far := int64(1)<<(few-1), int64(1)<<(more-1)
		if p.bit(d >= -near && d < near) {
			d = int64(p.bits(uint64(d+near), few)) - near
		} else {
			// The longer form excludes the range of the shorter one.
			if d > 0 {
				d -= near
			} else {
				d += near
			}
			d = int64(p.bits(uint64(d+far), more)) - far
			if d >= 0 {
				d += near
			} else {
				d -= near
			}
		}
		c[k] = int32(int64(b[k]) + d)
	}
	return true
}

func (p *packer) absolute(f *snapshot.Field, c []int32) {
	for k := range c {
		lo, hi := bounds(f, k)
		c[k] = int32(int64(lo) + int64(p.bits(uint64(int64(c[k])-int64(lo)), uint(bits.Len32(uint32(hi-lo))))))
	}
}

func (p *packer) check(f *snapshot.Field, c []int32) {
	for k, v := range c {
		lo, hi := bounds(f, k)
		p.bad = p.bad || v < lo || v > hi
	}
}

func bounds(f *snapshot.Field, k int) (lo, hi int32) {
	if f.Class == schema.ClassQuat && k == 0 {
		return 0, 3
	}
	return f.Lo, f.Hi
}
