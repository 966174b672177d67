// Package adaptive decodes payloads of the codec adaptive, and learns frames, as
// docs/spec/adaptive.md specifies it. It shares no code with package rpcdelta, so it is a test of
// the specification.
package adaptive

import (
	"encoding/json"
	"math/bits"
	"os"
	"testing"
)

// tables is docs/spec/tables/adaptive.json.
type tables struct {
	Squash []int64 `json:"squash"`
	Share  []int64 `json:"share"`
	Size   []int64 `json:"size"`
	Seed   []int64 `json:"seed"`
	Index  []int64 `json:"index"`
	Flags  struct {
		Bias     [3]int64 `json:"bias"`
		W        [4]int64 `json:"w"`
		FlagBias int64    `json:"flag_bias"`
		FlagW    [4]int64 `json:"flag_w"`
	} `json:"flags"`
	Weights map[string][3][]int64 `json:"weights"`
	Prior   struct {
		Kinds       [31][]int64      `json:"kinds"`
		Frequencies [3][48][64]int64 `json:"frequencies"`
	} `json:"prior"`
}

func readJSON(t *testing.T, path string, v any) {
	t.Helper()
	b, err := os.ReadFile("../../../" + path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatal(path, err)
	}
}

func clamp(x, a, b int64) int64 { return min(max(x, a), b) }
func abs(x int64) int64         { return max(x, -x) }
func bitlen(x int64) int64      { return int64(bits.Len64(uint64(x))) }

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func logOf(x int64) int64 {
	v := uint64(x + 1)
	n := uint(bits.Len64(v) - 1)
	return int64(n)<<10 | int64(v<<(63-n)>>53&1023)
}

func wrap(x, w int64) int64 {
	if w == 0 {
		return x
	}
	return x << (64 - w) >> (64 - w)
}

func toward(p *int64, yes bool) {
	if yes {
		*p += (65500 - *p) >> 4
	} else {
		*p -= *p >> 4
	}
}

// coder is the decoder of section 2. ops lists what it decoded.
type coder struct {
	in        []byte
	pos       int
	rng, code uint64
	shared    bool // the first byte is the header's last one
	malformed bool
	ops       [][4]int64
}

const (
	opBit = iota
	opRaw
	opSymbol
)

func newCoder(in []byte, free uint) *coder {
	d := &coder{in: in, rng: 1<<64 - 1, shared: free > 0}
	d.code = d.next()<<32 | d.next()
	if free > 0 {
		d.rng = 1 << (56 + free)
		d.code &= d.rng - 1
	}
	d.check()
	return d
}

func (d *coder) next() (v uint64) {
	for range 4 {
		v <<= 8
		if d.pos < len(d.in) {
			v |= uint64(d.in[d.pos])
		}
		d.pos++
	}
	return v
}

func (d *coder) check() {
	if d.code >= d.rng {
		d.code, d.malformed = d.rng-1, true
	}
}

func (d *coder) renorm() {
	if d.rng < 1<<32 {
		d.code = d.code<<32 | d.next()
		d.rng <<= 32
	}
}

func (d *coder) decide0(p0 int64) bool {
	t := (d.rng >> 16) * uint64(p0)
	b := d.code >= t
	if b {
		d.code -= t
		d.rng -= t
	} else {
		d.rng = t
	}
	d.renorm()
	d.ops = append(d.ops, [4]int64{opBit, truth(b), p0})
	return b
}

func (d *coder) decide1(p int64) bool { return d.decide0(65536 - p) }

func (d *coder) symbol(f *[64]int64, set, row int64) int64 {
	r := d.rng >> 16
	x := int64(min(d.code/r, 65535))
	s, below := int64(0), int64(0)
	for below+f[s] <= x {
		below += f[s]
		s++
	}
	d.code -= r * uint64(below)
	d.rng = r * uint64(f[s])
	d.check()
	d.renorm()
	d.ops = append(d.ops, [4]int64{opSymbol, s, set, row})
	return s
}

func (d *coder) raw(n int64) int64 {
	v := uint64(0)
	for left := n; left > 0; {
		k := min(left, 16)
		left -= k
		d.rng >>= k
		x := min(d.code/d.rng, 1<<k-1)
		d.code -= x * d.rng
		d.check()
		d.renorm()
		v = v<<k | x
	}
	if n > 0 {
		d.ops = append(d.ops, [4]int64{opRaw, int64(v), n})
	}
	return int64(v)
}

func (d *coder) fail(when bool) {
	if when {
		d.malformed = true
	}
}

// complete reports whether the payload is well-formed.
func (d *coder) complete() bool {
	n := len(d.in)
	switch {
	case d.malformed || d.shared && n == 0:
		return false
	case n == 0:
		return true
	}
	isHeader := d.shared && n == 1
	return n <= d.pos && (d.in[n-1] != 0 || isHeader) && d.code>>(8*(d.pos-n)) == 0
}
