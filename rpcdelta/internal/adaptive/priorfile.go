package adaptive

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"maps"
	"slices"
)

// An encoded prior: four magic bytes, the format, the model, the tables, the parameters by kind,
// the known fields, and the hash of all that precedes it.
const (
	priorMagic  = "uplp"
	priorFormat = 1
	priorModel  = 2 // changes with features, experts, classes and parameters
)

// MaxPrior is the maximum size of an encoded prior, in bytes.
const MaxPrior = 4 << 20

// ErrPrior is returned for data that is not a prior, or not one that this version can use.
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
