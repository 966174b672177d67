package peer

import (
	"cmp"
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/bitio"
)

// prefixCode is a canonical prefix code.
type prefixCode struct {
	codes   []uint64 // first bit lowest
	lengths []uint8
	tree    [][2]int16 // where a bit leads: another node, or ^symbol
}

// newPrefixCode makes the code of these lengths, which must use up all codes.
func newPrefixCode(lengths []uint8) *prefixCode {
	p := &prefixCode{codes: make([]uint64, len(lengths)), lengths: lengths, tree: make([][2]int16, 1, len(lengths))}
	order := make([]int, len(lengths))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(lengths[a], lengths[b]) })
	code, length := uint64(0), uint8(0)
	for _, symbol := range order {
		code <<= lengths[symbol] - length
		length = lengths[symbol]
		p.add(symbol, code)
		code++
	}
	return p
}

// add gives a symbol a code, whose first bit is the highest.
func (p *prefixCode) add(symbol int, code uint64) {
	node := int16(0)
	for left := p.lengths[symbol]; left > 0; left-- {
		bit := code >> (left - 1) & 1
		p.codes[symbol] |= bit << (p.lengths[symbol] - left)
		next := &p.tree[node][bit]
		switch {
		case left == 1:
			*next = ^int16(symbol)
		case *next == 0:
			*next = int16(len(p.tree))
			p.tree = append(p.tree, [2]int16{})
		}
		node = p.tree[node][bit]
	}
}

func (p *prefixCode) write(w *bitio.Writer, symbol int) {
	w.WriteBits(p.codes[symbol], uint(p.lengths[symbol]))
}

func (p *prefixCode) read(r *bitio.Reader) int {
	node := int16(0)
	for {
		if node = p.tree[node][r.ReadBits(1)]; node < 0 {
			return int(^node)
		}
	}
}

// huffmanLengths gives the lengths of the Huffman code of symbols that came so often, at least two of them, none never.
func huffmanLengths(counts []int) []uint8 {
	type set struct {
		count   int
		symbols []int
	}
	sets := make([]set, len(counts))
	for i, n := range counts {
		sets[i] = set{n, []int{i}}
	}
	lengths := make([]uint8, len(counts))
	for len(sets) > 1 {
		slices.SortStableFunc(sets, func(a, b set) int { return cmp.Compare(b.count, a.count) })
		a, b := sets[len(sets)-1], sets[len(sets)-2]
		both := set{a.count + b.count, slices.Concat(a.symbols, b.symbols)}
		for _, s := range both.symbols {
			lengths[s]++
		}
		sets = append(sets[:len(sets)-2], both)
	}
	return lengths
}
