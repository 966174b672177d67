package message

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// maxNearest is the number of bytes of a name that are compared. It bounds the time, because names
// may be hostile, and is the number of bits of a uint64.
const maxNearest = 64

// pattern is a name that other names are compared with. The time of a comparison is linear in the
// length of the other name, because a peer can send many names.
type pattern struct {
	name string
	at   [256]uint64 // bit i: the name has this byte at index i
}

func newPattern(name string) *pattern {
	p := &pattern{name: name[:min(len(name), maxNearest)]}
	for i := range len(p.name) {
		p.at[lower(p.name[i])] |= 1 << i
	}
	return p
}

// distance returns the distance of b from the pattern: 256 for each byte to insert or delete, less
// 1 for each byte of the common prefix. The case of ASCII letters is ignored.
func (p *pattern) distance(b string) int {
	a := p.name
	b = b[:min(len(b), maxNearest)]
	// Bit i of rows is 0 if byte i of the name extends the longest common subsequence of b so far
	// and the name up to byte i (Hyyrö, "Bit-Parallel LCS-length Computation Revisited", 2004).
	rows := ^uint64(0)
	for i := range len(b) {
		matches := rows & p.at[lower(b[i])]
		rows = (rows + matches) | (rows - matches)
	}
	subsequence := bits.OnesCount64(^rows << (maxNearest - len(a)))
	common := 0
	for common < min(len(a), len(b)) && lower(a[common]) == lower(b[common]) {
		common++
	}
	return 256*(len(a)+len(b)-2*subsequence) - common
}

func lower(b byte) byte {
	if b >= 'A' && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}

// SortByDistance sorts names by their distance from name, the nearest first.
func SortByDistance(names []string, name string) {
	p, distances := newPattern(name), make(map[string]int, len(names))
	for _, n := range names {
		distances[n] = p.distance(n)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(distances[a], distances[b]) })
}

// NearestName returns the element of names that is nearest to name, or "" if names is empty.
func NearestName(name string, names []string) (nearest string) {
	p, least := newPattern(name), math.MaxInt
	for _, n := range names {
		if d := p.distance(n); d < least {
			nearest, least = n, d
		}
	}
	return nearest
}

// Nearest returns the part of an error's text that suggests the nearest name, or "" if there is
// none.
func Nearest(name string, names []string) string { return AsNearest(NearestName(name, names)) }

// AsNearest returns the part of an error's text that suggests the name nearest, or "" if that is
// "".
func AsNearest(nearest string) string {
	if nearest == "" {
		return ""
	}
	return fmt.Sprintf(`, nearest "%s"`, Printable(nearest, maxPrinted))
}

// maxPrinted is the maximum number of bytes of a name in an error.
const maxPrinted = 255
