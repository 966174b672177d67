package rle

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// shortest returns the length of the shortest code of src by dynamic programming over all tokens at
// all places.
func shortest(src []byte) int {
	cost := make([]int, len(src)+1) // of src[i:]
	for i := len(src) - 1; i >= 0; i-- {
		best := 2 + cost[i+1]
		for n := 1; n <= maxRun && i+n <= len(src) && src[i+n-1] == src[i]; n++ {
			best = min(best, 2+cost[i+n])
		}
		for n := 1; n <= maxLiteral && i+n <= len(src); n++ {
			best = min(best, 1+n+cost[i+n])
		}
		cost[i] = best
	}
	return cost[0]
}

// bruteForce returns the same for short inputs: it tries every sequence of tokens.
func bruteForce(src []byte) int {
	if len(src) == 0 {
		return 0
	}
	best := 2 * len(src)
	for n := 1; n <= len(src); n++ {
		rest := bruteForce(src[n:])
		best = min(best, 1+n+rest)
		if bytes.Count(src[:n], src[:1]) == n {
			best = min(best, 2+rest)
		}
	}
	return best
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// check encodes src and verifies that the code has the wanted length, which EncodedLen returns and
// the bound permits, that its tokens add up to src, that it decodes to src, and that dst is
// preserved.
func check(t failer, src []byte, want int) {
	t.Helper()
	code := AppendEncode([]byte("dst"), src)
	if !bytes.HasPrefix(code, []byte("dst")) {
		t.Fatalf("dst became %x", code)
	}
	code = code[3:]
	if len(code) != want {
		t.Fatalf("%x: code %x of %d bytes, the shortest has %d", src, code, len(code), want)
	}
	if n := EncodedLen(src); n != len(code) {
		t.Fatalf("%x: EncodedLen is %d for a code of %d bytes", src, n, len(code))
	}
	if bound := len(src) + (len(src)+maxLiteral-1)/maxLiteral; len(code) > bound {
		t.Fatalf("%x: code of %d bytes, more than %d", src, len(code), bound)
	}
	stands := 0
	for rest := code; len(rest) > 0; {
		n, size := Token(rest[0])
		stands, rest = stands+n, rest[size:]
	}
	if stands != len(src) {
		t.Fatalf("%x: the tokens of %x stand for %d bytes", src, code, stands)
	}
	plain, err := AppendDecode([]byte("dst"), code, len(src))
	if err != nil || !bytes.Equal(plain, append([]byte("dst"), src...)) {
		t.Fatalf("%x: decoded as %x, %v", src, plain, err)
	}
}

// TestAllShortInputs tries every input of up to 10 bytes of three symbols, except for permutations
// of the symbols.
func TestAllShortInputs(t *testing.T) {
	tried := 0
	var extend func(src []byte, symbols byte)
	extend = func(src []byte, symbols byte) {
		tried++
		want := bruteForce(src)
		if dp := shortest(src); dp != want {
			t.Fatalf("%x: dynamic programming finds %d, brute force %d", src, dp, want)
		}
		check(t, src, want)
		if len(src) == 10 {
			return
		}
		for s := range min(symbols+1, 3) {
			extend(append(src, s), max(symbols, s+1))
		}
	}
	extend(make([]byte, 0, 10), 0)
	if want := 1 + 14767; tried != want { // the empty input, and the sum of (3^(n-1)+1)/2 over n = 1 to 10
		t.Errorf("%d inputs tried, want %d", tried, want)
	}
}

// build returns an input of stretches of equal bytes with the given lengths. Adjacent stretches
// differ.
func build(stretches []int) []byte {
	var src []byte
	for i, n := range stretches {
		src = append(src, bytes.Repeat([]byte{byte(i % 3)}, n)...)
	}
	return src
}

// TestLimits combines literals, pairs and runs whose lengths are around the limits of the tokens.
func TestLimits(t *testing.T) {
	blocks := [][]int{{2}, {2, 2}, {3}, {127}, {128}, {129}, {130}, {131}, {257}}
	for _, n := range []int{1, 2, 62, 124, 125, 126, 127, 128} {
		blocks = append(blocks, oneEach(n))
	}
	for _, a := range blocks {
		for _, b := range blocks {
			for _, c := range blocks {
				src := build(slices.Concat(a, b, c))
				check(t, src, shortest(src))
			}
		}
	}
}

// oneEach returns the stretches of n single bytes.
func oneEach(n int) []int { return slices.Repeat([]int{1}, n) }

// TestShortestProperty draws inputs by the lengths of their stretches, so that literals fill up and
// runs leave an odd byte.
func TestShortestProperty(t *testing.T) {
	lengths := rapid.OneOf(
		rapid.SampledFrom([]int{1, 2}),
		rapid.SampledFrom([]int{1, 1, 1, 2, 3, 4}),
		rapid.SampledFrom([]int{1, 127, 128, 129, 130, 257}),
	)
	rapid.Check(t, func(t *rapid.T) {
		var all []int
		for range rapid.IntRange(0, 12).Draw(t, "blocks") {
			if rapid.Bool().Draw(t, "long literal") {
				all = append(all, oneEach(rapid.IntRange(1, 130).Draw(t, "singles"))...)
			} else {
				all = append(all, rapid.SliceOfN(lengths, 0, 6).Draw(t, "stretches")...)
			}
		}
		src := build(all)
		check(t, src, shortest(src))
	})
}

// TestPairs lists the codes of inputs with stretches of two, full literals, and the odd byte of a
// long run, where several codes are equally short.
func TestPairs(t *testing.T) {
	zeros := strings.Repeat("0", 129)
	for _, c := range []struct{ plain, want string }{
		{"aa", "\x02a"},
		{"abb", "\x81a" + "\x02b"},
		{"aab", "\x02a" + "\x81b"},
		{"abbc", "\x84abbc"},
		{"abbbc", "\x81a" + "\x03b" + "\x81c"},
		{"abbccddefffff", "\x88abbccdde" + "\x05f"},
		{"aabbccd", "\x02a" + "\x02b" + "\x02c" + "\x81d"},
		{"a" + zeros + "b", "\x82a0" + "\x800" + "\x81b"},
		{zeros + "b", "\x800" + "\x820b"},
		{"aa" + zeros + "bb", "\x02a" + "\x800" + "\x810" + "\x02b"},
		{"abb" + zeros, "\x84abb0" + "\x800"},
	} {
		if got := AppendEncode(nil, []byte(c.plain)); string(got) != c.want {
			t.Errorf("%s: %q; want %q", c.plain, got, c.want)
		}
	}
}
