package statesync

import (
	"math/bits"

	"github.com/uplink-rpc/uplink/schema"
)

// Rows are stored packed: of each component its difference from its minimum, in the bits that its
// bounds need.

// layOut determines the packed form of a field.
func (p *plan) layOut(f *field) {
	for k := range f.N {
		lo, hi := f.bounds(k)
		n := uint8(bits.Len32(uint32(hi - lo)))
		if f.Class == schema.ClassBytes && k > 0 {
			lo, n = 0, 32
		}
		p.lows, p.widths = append(p.lows, lo), append(p.widths, n)
	}
	total := 0
	for _, n := range p.widths {
		total += int(n)
	}
	p.rowWords = total/64 + 1
}

// pack writes the packed form of a row to dst.
func (p *plan) pack(dst []uint64, row []int32) {
	word, used, at := uint64(0), uint8(0), 0
	lows := p.lows[:len(row)]
	for i, n := range p.widths[:len(row)] {
		v := uint64(uint32(row[i] - lows[i]))
		word |= v << (used & 63)
		if used += n; used >= 64 {
			dst[at] = word
			at++
			used -= 64
			word = v >> (n - used)
		}
	}
	if used > 0 {
		dst[at] = word
	}
}

// unpack writes the row of a packed form to row.
func (p *plan) unpack(row []int32, packed []uint64) {
	used, at := uint8(0), 0
	lows := p.lows[:len(row)]
	for i, n := range p.widths[:len(row)] {
		v := packed[at] >> (used & 63)
		if used += n; used >= 64 {
			at++
			if used -= 64; used > 0 {
				v |= packed[at] << (n - used)
			}
		}
		row[i] = int32(uint32(v&(1<<n-1))) + lows[i]
	}
}
