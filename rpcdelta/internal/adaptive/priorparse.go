package adaptive

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

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
