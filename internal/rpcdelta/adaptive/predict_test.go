package adaptive

import (
	"math/rand/v2"
	"testing"

	"github.com/uplink-rpc/uplink/internal/schema"
)

// TestForecast checks that forecast agrees with the separate functions.
func TestForecast(t *testing.T) {
	m := Generic().Compile([]Field{
		{Kind: Number, At: 0, N: 3, Lo: -1 << 20, Hi: 1 << 20, VelocityAt: 3, PerTick: schema.StepsPerTick(2. / 60)},
		{Kind: Number, At: 3, N: 3, Lo: -5000, Hi: 5000, VelocityAt: -1},
		{Kind: Number, At: 6, N: 2, Lo: -100, Hi: 100, Scalar: true, VelocityAt: -1},
		{Kind: Angle, At: 8, N: 2, Bits: 16, VelocityAt: -1},
		{Kind: Integer, At: 10, N: 1, Bits: 32, Signed: true, VelocityAt: -1},
	})
	const width = 11
	r := rand.New(rand.NewPCG(1, 2))
	experts := map[choice]bool{}
	for range 2000 {
		l := m.newState()
		l.copy(&m.initial)
		frame := func() []int32 {
			ints := make([]int32, width)
			for i := range ints {
				ints[i] = int32(r.IntN(1<<r.IntN(13)+1)) - 1<<6
			}
			return ints
		}
		c := frameContext{context: residualContext{near: int32(r.IntN(20 << 10)), run: int32(r.IntN(4 << 10))}}
		d := 1 + r.Int64N(MaxRing)
		c.refs = refFrames{ref: frame(), h1: frame(), h2: frame(), h4: frame(), hd: frame(), hdd: frame(), dist: d, class: classOf(d), classSpan: spans[d]}
		for _, rate := range []*int64{&c.refs.r1, &c.refs.r12, &c.refs.r24, &c.refs.rd, &c.refs.rdd} {
			*rate = d * int64(recip[1+r.IntN(MaxRing)])
		}
		ints := frame()
		for i := range m.groups {
			g := &m.groups[i]
			for k := range g.numComps {
				cp, lc := &m.components[g.firstComp+k], &l.components[g.firstComp+k]
				for cl := range lc.classes {
					in := &lc.classes[cl]
					in.expert = uint8(r.IntN(int(expertCount[g.family])))
					in.expected = int32(r.IntN(20 << 10))
					for j := range in.w {
						in.w[j] = int16(r.IntN(1 << 13))
					}
				}
				off := c.refs.offset(&l, ints, g, cp, lc, k)
				want, wantX := cp.fit(int64(c.refs.ref[cp.at])+off), lc.expect(&c.refs, &c.context, off)
				if pred, x := c.forecast(&l, ints, g, cp, lc, k); pred != want || x != wantX {
					t.Fatalf("group %d, component %d, distance %d: %d %v, want %d %v", i, k, d, pred, x, want, wantX)
				}
				experts[choice{lc.classes[c.refs.lo].expert, uint8(g.family)}] = true
			}
		}
	}
	if len(experts) != 3+4+2 {
		t.Errorf("only these experts were used: %v", experts)
	}
}
