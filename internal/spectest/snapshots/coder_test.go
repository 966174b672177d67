// Package snapshots decodes snapshots as docs/spec/snapshots.md specifies them. It shares no code
// with package snapshot, so it is a test of the specification.
package snapshots

import (
	"encoding/json"
	"math/bits"
	"os"
	"testing"
)

type vec = [16]int64

type model struct {
	Position  [2][3][7]vec  `json:"position"`
	Scale     [2][3][14]vec `json:"scale"`
	Roll      [2][3][5]vec  `json:"roll"`
	Turn      [3][14]vec    `json:"turn"`
	TurnScale [3][14]vec    `json:"turn_scale"`
	Number    [2][]int64    `json:"number"`
	Quat      []int64       `json:"quat"`
	Integer   []int64       `json:"integer"`
	Same      [4][]int64    `json:"same"`
	Object    []int64       `json:"object"`
}

type tables struct {
	Models [6]model `json:"models"`
	Angle  []int64  `json:"angle"`
}

func readTables(t testing.TB) *tables {
	b, err := os.ReadFile("../../../docs/spec/tables/snapshots.json")
	if err != nil {
		t.Fatal(err)
	}
	var tab tables
	if err := json.Unmarshal(b, &tab); err != nil {
		t.Fatal(err)
	}
	return &tab
}

func abs(v int64) int64         { return max(v, -v) }
func clamp(v, a, b int64) int64 { return min(max(v, a), b) }
func mod(v, n int64) int64      { return (v%n + n) % n }
func wrap(d, n int64) int64     { return mod(d+n/2, n) - n/2 }
func bitlen(v int64) int64      { return int64(bits.Len64(uint64(v))) }
func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func sign3(v int64) int64 {
	switch {
	case v > 0:
		return 1
	case v < 0:
		return 2
	}
	return 0
}

func isqrt(v int64) int64 {
	r := int64(0)
	for b := int64(1) << 31; b > 0; b >>= 1 {
		if (r+b)*(r+b) <= v {
			r += b
		}
	}
	return r
}

func part(i int64) int64 {
	if i == 0 {
		return 0
	}
	return (65536 + i/2) / i
}

func log(v int64) int64 {
	x := abs(v) + 12
	n := bitlen(x)
	f := x
	if n > 9 {
		f >>= n - 9
	} else {
		f <<= 9 - n
	}
	return (n-5)*256 + f&255
}

func predict(w, x *vec) int64 {
	s := int64(0)
	for i := range w {
		s += w[i] * x[i]
	}
	return s >> 16
}

func level(s int64) int64  { return clamp((s+256)*3>>8, 0, 39) }
func middle(l int64) int64 { return (l + 1) / 3 }

type coder struct {
	in        []byte
	read      int
	rng, code uint64
	bad       bool
	script    *script // makes the decisions in place of in, if it is not nil
}

func (c *coder) next(n int) {
	for range n {
		b := byte(0)
		if c.read < len(c.in) {
			b = c.in[c.read]
		}
		c.read++
		c.code = c.code<<8 | uint64(b)
	}
}

func (c *coder) start(in []byte) {
	*c = coder{in: in, rng: 1<<64 - 1, script: c.script}
	if c.script != nil {
		c.script.begin(in)
		return
	}
	c.next(8)
	c.check()
}

func (c *coder) check() {
	if c.code >= c.rng {
		c.code, c.bad = c.rng-1, true
	}
}

func (c *coder) renorm() {
	if c.rng < 1<<32 {
		c.next(4)
		c.rng <<= 32
	}
}

func (c *coder) complete() bool {
	n := len(c.in)
	return !c.bad && c.script != nil || !c.bad && (n == 0 || n <= c.read && c.in[n-1] != 0 && c.code>>(8*(c.read-n)) == 0)
}

func (c *coder) decide(p int64) (b bool) {
	if c.script != nil {
		return c.script.decide(p)
	}
	t := (c.rng >> 16) * uint64(65536-p)
	if b = c.code >= t; b {
		c.code -= t
		c.rng -= t
	} else {
		c.rng = t
	}
	c.renorm()
	return b
}

func (c *coder) raw(n int64) (v int64) {
	if c.script != nil {
		return c.script.raw(n)
	}
	for n > 0 {
		k := min(n, 16)
		n -= k
		c.rng >>= k
		x := min(c.code/c.rng, 1<<k-1)
		c.code -= x * c.rng
		c.check()
		c.renorm()
		v = v<<k | int64(x)
	}
	return v
}

func (c *coder) bit(at *int64) bool {
	p, r, to := *at&^7, *at&7, int64(16)
	b := c.decide(p)
	if b {
		to = 65520
	}
	*at = (p+((to-p)>>(r+2)))&^7 | r
	return b
}

func (c *coder) length(l []int64, mid int64) int64 {
	if c.script != nil {
		c.script.length(mid)
	}
	n := mid
	if c.bit(&l[5]) {
		for n++; n < 32 && c.bit(&l[5+min(n-mid, 6)]); n++ {
		}
		return n
	}
	for ; n > 0 && !c.bit(&l[5-min(mid-n+1, 5)]); n-- {
	}
	return n
}

func (c *coder) integer(i []int64, level, sign int64) int64 {
	mid := middle(level)
	n := c.length(i[12*level:], mid)
	if n == 0 {
		return 0
	}
	negative := c.bit(&i[480+sign])
	m, b := int64(1), i[633+4*clamp(n-mid+8, 0, 15):]
	left := n - 1
	for ; left > 0 && m < 4; left-- {
		m = m<<1 | truth(c.bit(&b[m]))
	}
	if left > 0 {
		m = m<<left | c.raw(left)
	}
	if negative {
		return -m
	}
	return m
}

func (c *coder) count(l []int64, level int64) int64 {
	n := c.length(l, middle(level))
	if n < 2 {
		return n
	}
	return 1<<(n-1) | c.raw(n-1)
}

func (c *coder) bounded(v, lo, hi int64) int64 {
	if v < lo || v > hi {
		c.bad = true
		return lo
	}
	return v
}

func (c *coder) uniform(lo, hi int64) int64 { return c.bounded(lo+c.raw(bitlen(hi-lo)), lo, hi) }

func (c *coder) component(i []int64, level, sign, guess, lo, hi int64) (v, e int64) {
	v = (guess + 8) >> 4
	if level < 9 {
		sign = 81 + (level/3*8+(guess-16*v+8)/2)*3 + sign%3
	}
	v = c.bounded(v+c.integer(i, level, sign), lo, hi)
	return v, 16*v - guess
}
