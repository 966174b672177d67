package control

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// maxNearest is the number of bytes of a name that count for its distance from another one: names
// may be hostile, and the time grows with its square.
const maxNearest = 64

// distance returns how far b is from a: 256 for each insertion and deletion of a byte that leads
// from one to the other, less 1 for each byte that they have in common at the start. The
// case of ASCII letters does not count.
func distance(a, b string) int {
	a, b = a[:min(len(a), maxNearest)], b[:min(len(b), maxNearest)]
	var buf [maxNearest + 1]int
	row := buf[:len(b)+1]
	for k := range row {
		row[k] = k
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for k := range len(b) {
			replaced := diagonal
			if lower(a[i]) != lower(b[k]) {
				replaced += 2
			}
			diagonal = row[k+1]
			row[k+1] = min(replaced, row[k]+1, row[k+1]+1)
		}
	}
	common := 0
	for common < min(len(a), len(b)) && lower(a[common]) == lower(b[common]) {
		common++
	}
	return 256*row[len(b)] - common
}

func lower(b byte) byte {
	if b >= 'A' && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}

// SortByDistance sorts names such that those come first that were probably meant by name.
func SortByDistance(names []string, name string) {
	distances := make(map[string]int, len(names))
	for _, n := range names {
		distances[n] = distance(name, n)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(distances[a], distances[b]) })
}

// NearestName returns the one of other names that was probably meant by name, or "" if there are
// none.
func NearestName(name string, names []string) (nearest string) {
	least := math.MaxInt
	for _, n := range names {
		if d := distance(name, n); d < least {
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
