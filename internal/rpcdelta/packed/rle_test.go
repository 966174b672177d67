package packed

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/schematest"
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
		c := NewCodec(Of(s))
		keyframe, ok := c.Append([]byte("before"), cur, nil)
		if !ok || string(keyframe[:6]) != "before" {
			t.Fatalf("keyframe frame of %v: %v %x", cur, ok, keyframe)
		}
		if n := c.KeyframeBytes(cur); n != len(keyframe)-6 {
			t.Fatalf("keyframe frame of %d bytes, said to be %d", len(keyframe)-6, n)
		}
		if err := c.Parse(got, nil, keyframe[6:]); err != nil || !got.Equal(cur) {
			t.Fatalf("keyframe frame of %v is %v, %v", cur, got, err)
		}
		delta, ok := c.Append(nil, cur, base)
		if !ok {
			return // a difference overflows: the encoder sends the keyframe frame
		}
		if err := c.Parse(got, base, delta); err != nil || !got.Equal(cur) {
			t.Fatalf("%v from %v is %v, %v", cur, base, got, err)
		}
	})
}

// TestOverflowIsKeyframe verifies that a frame whose difference does not fit is sent without a
// baseline.
func TestOverflowIsKeyframe(t *testing.T) {
	s := mustSchema(t, schema.Field{
		Name: "Wide", Kind: schema.KindVec2, Resolution: 1, Min: new(float64(-1<<31 + 1)), Max: new(float64(1<<31 - 1)),
	})
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
		r := NewCodec(Of(s))
		if _, ok := r.Append(nil, cur, base); ok != c.fits {
			t.Errorf("from %d to %d: fits %v, want %v", c.from, c.to, ok, c.fits)
		}
		keyframe, ok := r.Append(nil, cur, nil)
		if err := r.Parse(got, nil, keyframe); !ok || err != nil || !got.Equal(cur) {
			t.Errorf("%d without baseline: %v, %v", c.to, got, err)
		}
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
		c := NewCodec(Of(s))
		if coded, ok := c.Append(nil, cur, nil); ok {
			f.Add(seed, false, coded)
		}
		if coded, ok := c.Append(nil, cur, base); ok {
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
		c := NewCodec(Of(s))
		if c.Parse(got, base, coded) != nil {
			return
		}
		if err := s.Check(got); err != nil {
			t.Fatalf("%v accepts %x, but: %v", s.Fields(), coded, err)
		}
		Of(s).FullBits(got)
		again := s.NewFrame()
		for _, base := range []*schema.Frame{base, nil} {
			out, ok := c.Append(nil, got, base)
			if !ok && base != nil {
				continue // a difference overflows
			}
			if err := c.Parse(again, base, out); err != nil || !again.Equal(got) {
				t.Fatalf("%v comes back as %v, %v", got, again, err)
			}
		}
	})
}

func mustSchema(t testing.TB, fields ...schema.Field) *schema.Schema {
	t.Helper()
	s, err := schema.New("Test", 60, fields)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
