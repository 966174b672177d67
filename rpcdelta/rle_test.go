package rpcdelta

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/schematest"
	"github.com/uplink-rpc/uplink/schema"
)

// TestCodecRoundTrip verifies that any frame of any schema is decoded unchanged, with and without a
// baseline.
func TestCodecRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := schematest.FromRapid(t)
		s := pick.Schema()
		base, cur, got := s.NewFrame(), s.NewFrame(), s.NewFrame()
		pick.Frame(s, base, s.NewFrame())
		pick.Frame(s, cur, base)
		pick.Frame(s, got, cur) // the previous contents must not matter
		c := newRLE(formatOf(s))
		intra, ok := c.write([]byte("before"), cur, nil)
		if !ok || string(intra[:6]) != "before" {
			t.Fatalf("intra frame of %v: %v %x", cur, ok, intra)
		}
		if n := c.intraSize(cur); n != len(intra)-6 {
			t.Fatalf("intra frame of %d bytes, said to be %d", len(intra)-6, n)
		}
		if err := c.read(got, nil, intra[6:]); err != nil || !got.Equal(cur) {
			t.Fatalf("intra frame of %v is %v, %v", cur, got, err)
		}
		delta, ok := c.write(nil, cur, base)
		if !ok {
			return // a difference overflows: the encoder sends the intra frame
		}
		if err := c.read(got, base, delta); err != nil || !got.Equal(cur) {
			t.Fatalf("%v from %v is %v, %v", cur, base, got, err)
		}
	})
}

// TestOverflowIsIntra verifies that a frame whose difference does not fit is sent without a
// baseline.
func TestOverflowIsIntra(t *testing.T) {
	s := mustSchema(t, schema.Field{Name: "Wide", Kind: schema.KindVec2, Resolution: 1, Min: number(-1<<31 + 1), Max: number(1<<31 - 1)})
	base, cur, got := s.NewFrame(), s.NewFrame(), s.NewFrame()
	for _, c := range []struct {
		from, to int32
		fits     bool
	}{
		{0, 1<<31 - 1, true},
		{-1, 1<<31 - 2, true},
		{-1, 1<<31 - 1, false},
		{1<<31 - 1, -1<<31 + 1, false},
	} {
		base.Ints[0], cur.Ints[0] = c.from, c.to
		r := newRLE(formatOf(s))
		if _, ok := r.write(nil, cur, base); ok != c.fits {
			t.Errorf("from %d to %d: fits %v, want %v", c.from, c.to, ok, c.fits)
		}
		intra, ok := r.write(nil, cur, nil)
		if err := r.read(got, nil, intra); !ok || err != nil || !got.Equal(cur) {
			t.Errorf("%d without baseline: %v, %v", c.to, got, err)
		}
	}
	p := newPair(t, s, EncoderConfig{Codec: RLE}, DecoderConfig{})
	p.frame.Ints[0] = -1 << 30
	p.exchange(t)
	p.frame.Ints[0] = 1<<31 - 1
	if info := p.exchange(t); info.Kind != Intra || info.BaselineAge != 0 {
		t.Errorf("%+v, want an intra frame", info)
	}
}

// TestHashPasses verifies that a due hash does not prevent a small RPC from sending deltas.
func TestHashPasses(t *testing.T) {
	s := mustSchema(t, schema.Field{Name: "X", Kind: schema.KindScalar, Resolution: 1}, schema.Field{Name: "B", Kind: schema.KindUint, Width: 8})
	p := newPair(t, s, EncoderConfig{Codec: RLE}, DecoderConfig{})
	deltas := 0
	for i := range int32(600) {
		p.frame.Ints[0] = 10 * i
		if p.exchange(t).Kind == Delta {
			deltas++
		}
	}
	if deltas != 599 {
		t.Errorf("%d of 600 frames are deltas", deltas)
	}
}

// FuzzDecodeFrame verifies that decoding returns a frame in range or an error, and that an accepted
// frame can be encoded and decoded again.
func FuzzDecodeFrame(f *testing.F) {
	for seed := range uint64(8) {
		pick := schematest.FromRand(rand.New(rand.NewPCG(seed, 0)))
		s := pick.Schema()
		base, cur := s.NewFrame(), s.NewFrame()
		pick.Frame(s, base, cur)
		pick.Frame(s, cur, base)
		c := newRLE(formatOf(s))
		if coded, ok := c.write(nil, cur, nil); ok {
			f.Add(seed, false, coded)
		}
		if coded, ok := c.write(nil, cur, base); ok {
			f.Add(seed, true, coded)
		}
	}
	f.Fuzz(func(t *testing.T, seed uint64, delta bool, coded []byte) {
		pick := schematest.FromRand(rand.New(rand.NewPCG(seed, 0)))
		s := pick.Schema()
		base, got := s.NewFrame(), s.NewFrame()
		pick.Frame(s, base, got)
		if !delta {
			base = nil
		}
		c := newRLE(formatOf(s))
		if c.read(got, base, coded) != nil {
			return
		}
		if err := s.Check(got); err != nil {
			t.Fatalf("%v accepts %x, but: %v", s.Fields(), coded, err)
		}
		FullBits(s, got)
		again := s.NewFrame()
		if base != nil {
			if out, ok := c.write(nil, got, base); ok {
				if err := c.read(again, base, out); err != nil || !again.Equal(got) {
					t.Fatalf("%v comes back as %v, %v", got, again, err)
				}
			}
		}
		out, ok := c.write(nil, got, nil)
		if err := c.read(again, nil, out); !ok || err != nil || !again.Equal(got) {
			t.Fatalf("%v comes back as %v, %v", got, again, err)
		}
	})
}

// FuzzSchema encodes frames at the ends of the ranges of any schema that Parse accepts.
func FuzzSchema(f *testing.F) {
	f.Add([]byte(`{"rpc": "A", "fields": [{"name": "S", "kind": "scalar", "resolution": 1, "min": 9e6}]}`))
	f.Add([]byte(`{"rpc": "A", "fields": [{"name": "S", "kind": "scalar", "resolution": 1, "min": -2147483648, "max": 1e9}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := schema.Parse(data)
		if err != nil {
			return
		}
		cur, got := s.NewFrame(), s.NewFrame()
		c := newRLE(formatOf(s))
		for end := range 2 {
			for _, l := range s.Layouts() {
				for k := range l.N {
					lo, hi := l.ComponentRange(k)
					cur.Ints[l.At+k] = int32(uint32([]int64{lo, hi}[end]))
				}
			}
			coded, ok := c.write(nil, cur, nil)
			if !ok || len(coded) != c.intraSize(cur) {
				t.Fatalf("%v takes %d bytes, want %d", cur, len(coded), c.intraSize(cur))
			}
			if err := c.read(got, nil, coded); err != nil || !got.Equal(cur) {
				t.Fatalf("%v decodes to %v, %v", cur, got, err)
			}
		}
	})
}
