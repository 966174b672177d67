package message

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// maxNearest is the number of bytes of a name that count for its distance from another one, at most
// the bits of a uint64: names may be hostile.
const maxNearest = 64

// pattern is a name that others are compared with, each in a time that grows with its length, and
// not with the product of both: a peer can send many names.
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

// distance returns how far b is from the pattern: 256 for each insertion and deletion of a byte
// that leads from one to the other, less 1 for each byte that they have in common at the start. The
// case of ASCII letters does not count.
func (p *pattern) distance(b string) int {
	a := p.name
	b = b[:min(len(b), maxNearest)]
	// Bit i of rows is 0 where the longest common subsequence of b so far and of the first bytes of
	// the name grows with byte i (Hyyrö, "Bit-Parallel LCS-length Computation Revisited", 2004).
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

// SortByDistance sorts names such that those come first that were probably meant by name.
func SortByDistance(names []string, name string) {
	p, distances := newPattern(name), make(map[string]int, len(names))
	for _, n := range names {
		distances[n] = p.distance(n)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(distances[a], distances[b]) })
}

// NearestName returns the one of other names that was probably meant by name, or "" if there are
// none.
func NearestName(name string, names []string) (nearest string) {
	p, least := newPattern(name), math.MaxInt
	for _, n := range names {
		if d := p.distance(n); d < least {
			nearest, least = n, d
		}
	}
	return nearest
}

// Nearest returns the text of an error about that name: nothing if there are none.
func Nearest(name string, names []string) string { return AsNearest(NearestName(name, names)) }

// AsNearest returns the text of an error about a nearest name: nothing if that is "".
func AsNearest(nearest string) string {
	if nearest == "" {
		return ""
	}
	return fmt.Sprintf(`, nearest "%s"`, Printable(nearest, maxPrinted))
}

// maxPrinted is the maximum number of bytes of a name in an error.
const maxPrinted = 255
