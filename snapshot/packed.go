package snapshot

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/bitio"
)

// Packing is which parts of hand-made bit packing are used. Each is worth something only with those before it.
type Packing struct {
	// Changed sends only objects that differ from the baseline, with a bit each.
	Changed bool
	// Indices sends, where that is shorter, how far each changed object is from the one before it.
	Indices bool
	// Places sends small changes of Motion fields as such.
	Places bool
	// Orientations sends small changes of the smallest three as such.
	Orientations bool
	// Same spends a bit a field on saying that it did not change.
	Same bool
	// AtRest spends a bit on Motion fields but the first, which are zero where nothing moves.
	AtRest bool
}

// ErrObjects says that bit packing was asked for sets of different objects.
var ErrObjects = errors.New("snapshot: not the objects of the baseline")

// Packer packs sets by hand-made rules, without prediction or learning: what the adaptive form is measured against.
type Packer struct {
	schema  *Schema
	use     Packing
	w       bitio.Writer
	r       bitio.Reader
	reading bool
	bad     bool
	changed []int
	row     []int32
}

// NewPacker makes a packer.
func NewPacker(s *Schema, use Packing) *Packer {
	return &Packer{schema: s, use: use, row: make([]int32, s.ints)}
}

// Append appends cur against base, which has the same objects, or else it is [ErrObjects].
func (p *Packer) Append(dst []byte, cur, base *Set) ([]byte, error) {
	if !slices.Equal(cur.objects, base.objects) {
		return dst, ErrObjects
	}
	p.w.Reset(dst)
	p.reading = false
	p.changed = p.changed[:0]
	for i := range cur.objects {
		if !p.use.Changed || !slices.Equal(cur.Row(i), base.Row(i)) {
			p.changed = append(p.changed, i)
		}
	}
	p.which(len(cur.objects))
	for _, i := range p.changed {
		p.code(cur.Row(i), base.Row(i))
	}
	return p.w.Bytes(), nil
}

// Decode rebuilds into cur what was packed against base. Any input is safe.
func (p *Packer) Decode(cur, base *Set, src []byte) error {
	p.r.Reset(src)
	p.reading, p.bad = true, false
	cur.CopyFrom(base)
	p.which(len(cur.objects))
	for _, i := range p.changed {
		p.code(cur.Row(i), base.Row(i))
	}
	p.r.Align()
	if err := p.r.Err(); err != nil || p.bad || p.r.Len() > 0 {
		return fmt.Errorf("%w: packed set", ErrMalformed)
	}
	return nil
}

func (p *Packer) bits(v uint64, n uint) uint64 {
	if p.reading {
		return p.r.ReadBits(n)
	}
	p.w.WriteBits(v, n)
	return v
}

func (p *Packer) bit(b bool) bool {
	v := uint64(0)
	if b {
		v = 1
	}
	return p.bits(v, 1) != 0
}

// which says which of n objects changed.
func (p *Packer) which(n int) {
	if !p.use.Changed {
		p.changed = p.changed[:0]
		for i := range n {
			p.changed = append(p.changed, i)
		}
		return
	}
	if p.use.Indices && p.bit(p.indexBits(n) < n) {
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

// indexBits is what indices take.
func (p *Packer) indexBits(n int) int {
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

func (p *Packer) indices(n int) {
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

func (p *Packer) code(cur, base []int32) {
	for i := range p.schema.fields {
		f, at := &p.schema.fields[i], p.schema.at[i]
		c, b := cur[at:at+f.N], base[at:at+f.N]
		if p.use.Same && f.moves() && p.bit(slices.Equal(c, b)) {
			copy(c, b)
			continue
		}
		if p.use.AtRest && f.Kind == Motion && i != p.schema.anchor && f.Lo <= 0 && f.Hi >= 0 && p.rest(c) {
			continue
		}
		switch {
		case f.Kind == Motion && p.use.Places && p.small(c, b, 5, 9),
			f.Kind == Quat && p.use.Orientations && p.largest(c, b) && p.small(c[1:], b[1:], 5, 8):
			p.check(f, c)
		default:
			p.whole(f, c)
		}
	}
}

func (p *Packer) rest(c []int32) bool {
	if !p.bit(!slices.ContainsFunc(c, func(v int32) bool { return v != 0 })) {
		return false
	}
	clear(c)
	return true
}

// largest says whether the index of the largest is that of the baseline and the rest is small.
func (p *Packer) largest(c, b []int32) bool {
	if !p.bit(c[0] == b[0]) {
		return false
	}
	c[0] = b[0]
	return true
}

// small codes changes of few bits each, if all are.
func (p *Packer) small(c, b []int32, few, more uint) bool {
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
			// What is not near leaves out the near ones.
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

func (p *Packer) whole(f *Field, c []int32) {
	for k := range c {
		lo, hi := f.bounds(k)
		c[k] = int32(int64(lo) + int64(p.bits(uint64(int64(c[k])-int64(lo)), uint(bits.Len32(uint32(hi-lo))))))
	}
	p.check(f, c)
}

func (p *Packer) check(f *Field, c []int32) {
	p.bad = p.bad || !f.holds(c)
}
