package snapshot

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// newCodecs returns an encoder and a decoder with the same random model.
func newCodecs(t *rapid.T, s *Schema) (enc, dec *payloadCodec) {
	m := s.newModel()
	for i := range m.start {
		m.start[i] = levelProb(rapid.IntRange(-topLevel, topLevel).Draw(t, "level")) | prob(rapid.IntRange(0, rateMask).Draw(t, "rate"))
	}
	enc, dec = &payloadCodec{}, &payloadCodec{}
	enc.init(s, false)
	dec.init(s, true)
	enc.begin(m)
	dec.begin(m)
	return enc, dec
}

// TestIntegers verifies that integers round-trip at any expected magnitude, whatever the
// probabilities, and that these stay in their bounds.
func TestIntegers(t *testing.T) {
	s := PriorSchema()
	rapid.Check(t, func(t *rapid.T) {
		type item struct {
			level, sign int
			v           int64
		}
		items := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) item {
			size := rapid.IntRange(0, 31).Draw(t, "size")
			return item{rapid.IntRange(0, levels-1).Draw(t, "level"), rapid.IntRange(0, signs-1).Draw(t, "sign"), rapid.Int64Range(-1<<size, 1<<size).Draw(t, "v")}
		}), 1, 200).Draw(t, "items")
		enc, dec := newCodecs(t, s)
		at := s.layout.numbers[1] + integerSize
		enc.Enc.Reset(nil, 0)
		for _, it := range items {
			enc.integer(at, it.level, it.sign, it.v)
			enc.count(s.layout.physics, physicsLevel, uint64(max(it.v, -it.v)))
		}
		dec.Dec.Reset(enc.Enc.Finish(), 0)
		for _, it := range items {
			if v := dec.integer(at, it.level, it.sign, 0); v != it.v {
				t.Fatalf("%d, want %d", v, it.v)
			}
			if v := dec.count(s.layout.physics, physicsLevel, 0); v != uint64(max(it.v, -it.v)) {
				t.Fatalf("count %d, want that of %d", v, it.v)
			}
		}
		if !dec.Dec.Complete() || !slices.Equal(enc.probs, dec.probs) {
			t.Fatal("the decoder is in another state")
		}
		for k, p := range enc.probs {
			if v := p &^ rateMask; v < unlikely || v > 1<<16-unlikely {
				t.Fatalf("context %d: probability %d", k, v)
			}
		}
	})
}

// TestPriorIsCanonical verifies that the built-in model is what its parameters encode to.
func TestPriorIsCanonical(t *testing.T) {
	m, s := prior()
	if m == nil {
		t.Fatal("the built-in model is malformed")
	}
	if got := m.appendTo(nil, s); !bytes.Equal(got, priorBytes) {
		t.Fatalf("%d bytes that differ from the %d of the file", len(got), len(priorBytes))
	}
}

// TestClosest compares the grid with a search of all objects.
func TestClosest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var g spatialGrid
		side := rapid.Int64Range(10, 1<<18).Draw(t, "side")
		position := rapid.Custom(func(t *rapid.T) (p [3]int64) {
			for k := range p {
				p[k] = rapid.Int64Range(-side, side).Draw(t, "component")
			}
			return p
		})
		moving := rapid.SliceOfN(position, 0, maxScan/len(around)).Draw(t, "moving")
		late := rapid.IntRange(0, len(moving)).Draw(t, "late")
		for _, p := range moving[late:] {
			g.add(p[0], p[1], p[2])
		}
		g.spread(reachOf(rapid.Int64Range(0, maxContact).Draw(t, "contact")))
		for _, p := range moving[:late] {
			g.add(p[0], p[1], p[2])
		}
		for _, p := range append(rapid.SliceOfN(position, 1, 20).Draw(t, "positions"), moving...) {
			want := g.reach
			for i := range moving {
				x, y, z := moving[i][0]-p[0], moving[i][1]-p[1], moving[i][2]-p[2]
				want = min(want, (x*x+y*y+z*z)>>2)
			}
			if g.outside(p[0], p[1], p[2]) && want != g.reach {
				t.Fatalf("%v counts as out of bounds, want %d", p, want)
			}
			if got := g.closest(p[0], p[1], p[2]); got != want {
				t.Fatalf("%d at %v, want %d", got, p, want)
			}
		}
	})
}

// TestEachDifferent compares rows of any width.
func TestEachDifferent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width, n := rapid.IntRange(1, 80).Draw(t, "width"), rapid.IntRange(0, 60).Draw(t, "rows")
		a, want := make([]int32, width*n), make([]bool, n)
		b := slices.Clone(a)
		for range rapid.IntRange(0, 5).Draw(t, "changes") {
			if n > 0 {
				i := rapid.IntRange(0, len(a)-1).Draw(t, "component")
				b[i], want[i/width] = 1, true
			}
		}
		got := make([]bool, n)
		eachDifferent(a, b, width, func(row int) { got[row] = true })
		if !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}
