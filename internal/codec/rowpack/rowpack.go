// Package rowpack packs rows of bounded integers: each component takes the bits that its bounds
// need.
package rowpack

import "math/bits"

// Layout is the packed form of rows. It stores the difference of each component from its minimum,
// with the first component in the lowest bits. Layouts are immutable and safe for concurrent use.
type Layout struct {
	places []place // place of each component
	splits []split
	words  int
}

// place is the position of a component: its difference from low, shifted within a word.
type place struct {
	low                int32
	mask               uint32
	word, shift, width uint8
}

// split marks a component that continues in the low bits of the next word.
type split struct{ component, word, shift uint8 }

// New returns the layout of at most 128 components with bounds. Differences are modulo 2^32: 0 and
// -1 are the bounds of an unsigned component.
func New(lows, highs []int32) Layout {
	l, at := Layout{}, 0
	for i, low := range lows {
		width := bits.Len32(uint32(highs[i] - low))
		word, shift := uint8(at/64), uint8(at%64)
		l.places = append(l.places, place{low, uint32(uint64(1)<<width - 1), word, shift, uint8(width)})
		if int(shift)+width > 64 {
			l.splits = append(l.splits, split{uint8(i), word + 1, 64 - shift})
		}
		at += width
	}
	l.words = at/64 + 1
	return l
}

// Words returns the number of words of a packed row.
func (l *Layout) Words() int { return l.words }

// Pack writes the packed form of a row, whose components are within their bounds, to dst. The bits
// after the last component are 0.
func (l *Layout) Pack(dst []uint64, row []int32) {
	word, used, at := uint64(0), uint8(0), 0
	places := l.places[:len(row)]
	for i, v := range row {
		c := &places[i]
		d := uint64(uint32(v - c.low))
		word |= d << (used & 63)
		if used += c.width; used >= 64 {
			dst[at] = word
			at++
			used -= 64
			word = d >> (c.width - used)
		}
	}
	dst[at] = word
}

// Unpack writes the components of a packed row to row.
func (l *Layout) Unpack(row []int32, packed []uint64) {
	places := l.places[:len(row)]
	for i := range row {
		c := &places[i]
		row[i] = int32(uint32(packed[c.word]>>(c.shift&63))&c.mask) + c.low
	}
	for _, s := range l.splits {
		row[s.component] += int32(uint32(packed[s.word]<<(s.shift&63)) & places[s.component].mask)
	}
}
