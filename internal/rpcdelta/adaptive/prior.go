package adaptive

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"sync"
)

// Prior is the starting point of streams: the frequency tables of residuals, initial parameters by
// kind, and initial parameters of known fields. It is immutable and safe for concurrent use.
type Prior struct {
	hash   uint64
	freq   *frequencies
	tables *tables
	kinds  [paramKinds][]int32 // parameters of unknown fields; nil: built-in values
	fields map[uint64]fieldParams
}

// fieldParams are the parameters of a known field. kind is the kind of the field's flag.
type fieldParams struct {
	kind   paramKind
	values []int32
}

// generic.prior is trained on the traces in testdata/traces:
//
//	uplink train --generic testdata/traces/*.csv.gz -o internal/rpcdelta/adaptive/generic.prior
//
//go:embed generic.prior
var genericFile []byte

// Generic returns the built-in prior.
var Generic = sync.OnceValue(func() *Prior {
	p, err := ParsePrior(genericFile)
	if err != nil {
		panic("adaptive: the built-in prior: " + err.Error())
	}
	return p
})

// Hash returns the hash of the encoded prior, which identifies it.
func (p *Prior) Hash() uint64 { return p.hash }

// Fields returns the number of known fields.
func (p *Prior) Fields() int { return len(p.fields) }

// apply loads the prior into the model's initial state.
func (p *Prior) apply(m *Model) {
	for i := range m.groups {
		g := &m.groups[i]
		all := m.params(i)
		for _, x := range all {
			p.applyKind(m, x)
		}
		k, ok := p.fields[g.key]
		if !ok || g.key == 0 || k.kind != all[0].kind {
			continue
		}
		was := paramVisitor{}
		for _, x := range all {
			was.param(&m.initial, m, x)
		}
		if len(was.values) != len(k.values) {
			continue // same key, but another number of components
		}
		s := paramVisitor{values: k.values, load: true}
		for _, x := range all {
			s.param(&m.initial, m, x)
		}
	}
}

// applyKind loads the initial values of the kind of x, if their number matches.
func (p *Prior) applyKind(m *Model, x paramRef) {
	v := p.kinds[x.kind]
	if v == nil {
		return
	}
	was := paramVisitor{}
	if was.param(&m.initial, m, x); len(was.values) != len(v) {
		return
	}
	s := paramVisitor{values: v, load: true}
	s.param(&m.initial, m, x)
}

// Compile compiles the fields of a frame for streams that start from p. The fields must be valid:
// disjoint components, ordered bounds.
func (p *Prior) Compile(fields []Field) *Model {
	m := &Model{tables: p.tables}
	b := builder{m: m, fields: fields}
	b.build()
	m.initial = m.newState()
	m.initial.reset(m)
	p.apply(m)
	return m
}

// Encoded form of a prior: four magic bytes, the format, the model, the tables, the parameters by
// kind, the known fields, and a hash of everything before it.
const (
	priorMagic  = "uplp"
	priorFormat = 1
	priorModel  = 3 // increment when features, experts, classes or parameters change
)

// MaxPrior is the maximum size of an encoded prior, in bytes.
const MaxPrior = 4 << 20

// ErrPrior is returned for data that is not a prior, or is a prior of another version.
var ErrPrior = errors.New("not a usable prior")

// Append appends the encoded prior to dst.
func (p *Prior) Append(dst []byte) []byte {
	from := len(dst)
	dst = append(dst, priorMagic...)
	dst = append(dst, priorFormat, priorModel)
	for i := range p.freq {
		for j := range p.freq[i] {
			dst = appendTable(dst, &p.freq[i][j])
		}
	}
	for _, v := range p.kinds {
		dst = appendValues(dst, v)
	}
	dst = binary.AppendUvarint(dst, uint64(len(p.fields)))
	for _, key := range slices.Sorted(maps.Keys(p.fields)) {
		k := p.fields[key]
		dst = binary.LittleEndian.AppendUint64(dst, key)
		dst = binary.AppendUvarint(dst, uint64(k.kind))
		dst = appendValues(dst, k.values)
	}
	return binary.LittleEndian.AppendUint64(dst, priorHash(dst[from:]))
}

// appendTable appends the number of symbols up to the last frequency above 1, and their frequencies
// minus 1.
func appendTable(dst []byte, table *[symbols]uint16) []byte {
	n := len(table)
	for n > 0 && table[n-1] == 1 {
		n--
	}
	dst = append(dst, byte(n))
	for _, f := range table[:n] {
		dst = binary.AppendUvarint(dst, uint64(f-1))
	}
	return dst
}

func appendValues(dst []byte, v []int32) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(v)))
	for _, x := range v {
		dst = binary.AppendVarint(dst, int64(x))
	}
	return dst
}

// priorHash returns FNV-1a with a final mix, since priors may differ in few bits.
func priorHash(b []byte) uint64 {
	h := fnv.New64a()
	h.Write(b)
	x := h.Sum64()
	x = (x ^ x>>31) * 0x7fb5d329728ea185
	return x ^ x>>29
}

// ParsePrior parses an encoded prior. An error wraps [ErrPrior] and describes the problem. The
// memory used is proportional to the size of data, which must not exceed [MaxPrior] bytes; data is
// not retained.
func ParsePrior(data []byte) (*Prior, error) {
	r := priorReader{b: data}
	if len(data) > MaxPrior {
		return nil, r.errorf("%d bytes, want at most %d", len(data), MaxPrior)
	}
	if !bytes.HasPrefix(data, []byte(priorMagic)) {
		return nil, r.errorf("it does not begin as one")
	}
	if len(data) < len(priorMagic)+2+8 {
		return nil, r.errorf("it ends after %d bytes", len(data))
	}
	if f, m := data[4], data[5]; f != priorFormat || m != priorModel {
		return nil, r.errorf("it is of format %d and model %d, this version reads %d and %d: train it again",
			f, m, priorFormat, priorModel)
	}
	body := data[:len(data)-8]
	p := &Prior{hash: priorHash(body), freq: &frequencies{}}
	if binary.LittleEndian.Uint64(data[len(body):]) != p.hash {
		return nil, r.errorf("it was damaged or cut off: its hash does not match")
	}
	r.b = body[6:]
	r.prior(p)
	if r.err == nil && len(r.b) != 0 {
		r.fail("%d bytes too many", len(r.b))
	}
	if r.err != nil {
		return nil, r.err
	}
	p.tables = newTables(p.freq)
	return p, nil
}

// priorReader reads numbers until the first error.
type priorReader struct {
	b   []byte
	err error
}

func (r *priorReader) errorf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrPrior, fmt.Sprintf(format, args...))
}

func (r *priorReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err, r.b = r.errorf(format, args...), nil
	}
}

func (r *priorReader) prior(p *Prior) {
	for i := range p.freq {
		for j := range p.freq[i] {
			r.table(&p.freq[i][j])
		}
	}
	for i := range p.kinds {
		p.kinds[i] = r.values()
	}
	p.fields = map[uint64]fieldParams{}
	last := uint64(0)
	for n := r.number(uint64(len(r.b))); n > 0 && r.err == nil; n-- {
		key := r.key(last)
		k := fieldParams{kind: paramKind(r.number(1<<8 - 1))}
		k.values = r.values()
		p.fields[key] = k
		last = key
	}
}

// key reads the key of a field, which must be greater than last.
func (r *priorReader) key(last uint64) uint64 {
	if len(r.b) < 8 {
		r.fail("a field is cut off")
		return 0
	}
	key := binary.LittleEndian.Uint64(r.b)
	if key <= last {
		r.fail("fields are out of order")
		return 0
	}
	r.b = r.b[8:]
	return key
}

// number reads a number of at most limit in its shortest form.
func (r *priorReader) number(limit uint64) uint64 {
	x, n := binary.Uvarint(r.b)
	if n <= 0 || n > 1 && r.b[n-1] == 0 || x > limit {
		r.fail("a number is cut off or too large")
		return 0
	}
	r.b = r.b[n:]
	return x
}

func (r *priorReader) table(f *[symbols]uint16) {
	n := int(r.number(symbols))
	sum := 0
	for s := range f {
		f[s] = 1
		if s < n {
			f[s] += uint16(r.number(1<<16 - symbols))
		}
		sum += int(f[s])
	}
	if sum != 1<<16 || n > 0 && f[n-1] == 1 {
		r.fail("the frequencies of a table are wrong")
	}
}

// values reads a list of numbers; an empty list is nil.
func (r *priorReader) values() []int32 {
	n := r.number(uint64(len(r.b)))
	if n == 0 {
		return nil
	}
	v := make([]int32, 0, n)
	for range n {
		x := r.number(1<<32 - 1)
		v = append(v, int32(uint32(x)>>1)^-int32(x&1))
	}
	return v
}
