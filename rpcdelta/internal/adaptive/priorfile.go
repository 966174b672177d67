package adaptive

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"maps"
	"slices"
)

// A prior's file: these four bytes, the format, the model that the numbers
// belong to, then the tables, the sorts, the fields and the hash of all before.
const (
	priorMagic  = "uplp"
	priorFormat = 1
	priorModel  = 2 // changes with features, experts, classes and what is learned
)

// MaxPrior is the most bytes of a prior's file.
const MaxPrior = 4 << 20

// ErrPrior is returned for a file that is no prior, or not one that this
// version can use.
var ErrPrior = errors.New("not a usable prior")

// Append appends the prior as a file.
func (p *Prior) Append(dst []byte) []byte {
	from := len(dst)
	dst = append(dst, priorMagic...)
	dst = append(dst, priorFormat, priorModel)
	for i := range p.freq {
		for j := range p.freq[i] {
			dst = appendRow(dst, &p.freq[i][j])
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

// appendRow appends how many symbols lie before the last frequency above 1, and
// their frequencies, less 1.
func appendRow(dst []byte, row *[symbols]uint16) []byte {
	n := len(row)
	for n > 0 && row[n-1] == 1 {
		n--
	}
	dst = append(dst, byte(n))
	for _, f := range row[:n] {
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

// priorHash is FNV-1a, with its bits spread once more: files differ in few of
// them.
func priorHash(b []byte) uint64 {
	h := fnv.New64a()
	h.Write(b)
	x := h.Sum64()
	x = (x ^ x>>31) * 0x7fb5d329728ea185
	return x ^ x>>29
}
