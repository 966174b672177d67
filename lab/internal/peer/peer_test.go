package peer

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/inspect"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// everything returns a schema with fields of each kind and of several sizes.
func everything(t *testing.T) *schema.Schema {
	t.Helper()
	limit := func(v float64) *float64 { return &v }
	s, err := schema.New("Everything", 60, []schema.Field{
		{Name: "Location", Kind: schema.KindVec3, Resolution: 0.1},
		{Name: "Far", Kind: schema.KindVec2, Resolution: 1, Min: limit(-2e9), Max: limit(2e9)},
		{Name: "Near", Kind: schema.KindScalar, Resolution: 0.5, Min: limit(0), Max: limit(1), Count: 2},
		{Name: "View", Kind: schema.KindAngle, Count: 2},
		{Name: "Coarse", Kind: schema.KindAngle, Bits: 2},
		{Name: "Rotation", Kind: schema.KindQuat, Bits: 14},
		{Name: "Aim", Kind: schema.KindUnitVec},
		{Name: "Tick", Kind: schema.KindUint, Width: 32},
		{Name: "Wide", Kind: schema.KindUint, Width: 64},
		{Name: "Ammo", Kind: schema.KindInt, Width: 7, Count: 2},
		{Name: "Score", Kind: schema.KindInt, Width: 40},
		{Name: "Ready", Kind: schema.KindBool, Count: 3},
		{Name: "Keys", Kind: schema.KindBits, Width: 12},
		{Name: "Hash", Kind: schema.KindFixed, Size: 5},
		{Name: "Chat", Kind: schema.KindBytes, Max: limit(300)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// drawFrame draws a frame that may be similar to another one.
func drawFrame(t *rapid.T, s *schema.Schema, like *schema.Frame) schema.Frame {
	f := *s.NewFrame()
	l := newLayout(s)
	for i := range l.components {
		c := &l.components[i]
		switch rapid.IntRange(0, 3).Draw(t, "how") {
		case 0:
			f.Ints[i] = like.Ints[i]
		case 1:
			f.Ints[i] = c.value(uint32(like.Ints[i]) + uint32(rapid.Int32Range(-3, 3).Draw(t, "step")))
		default:
			f.Ints[i] = c.value(rapid.Uint32().Draw(t, "value"))
		}
		if v := f.Ints[i]; c.signed && !c.xor && v < 0 && v == c.extend(1<<(c.bits-1)) {
			f.Ints[i] = 0 // ranges are symmetric
		}
	}
	f.Bytes[0] = rapid.SliceOfN(rapid.Byte(), 5, 5).Draw(t, "hash")
	f.Bytes[1] = rapid.SliceOfN(rapid.ByteRange('a', 'c'), 0, 300).Draw(t, "chat")
	if rapid.Bool().Draw(t, "same") {
		f.Bytes[0], f.Bytes[1] = bytes.Clone(like.Bytes[0]), bytes.Clone(like.Bytes[1])
	}
	return f
}

// samples returns frames of a slow motion.
func samples(s *schema.Schema) []Sample {
	frames := make([]schema.Frame, 300)
	var all []Sample
	for n := range frames {
		frames[n] = *s.NewFrame()
		for i := range frames[n].Ints[:6] {
			frames[n].Ints[i] = int32(n*(i+1)*(n%7)) % 5000
		}
		if n >= 6 {
			all = append(all, Sample{&frames[n-6], frames[n-2 : n+1]})
		}
	}
	return all
}

// TestRoundTrip checks that every peer decodes random frames in every form, one or several in a
// payload.
func TestRoundTrip(t *testing.T) {
	s := everything(t)
	for _, k := range Kinds() {
		forms, most := k.Forms, k.Span
		if k.Class == General {
			forms, most = k.RepeatForms(), 4
		}
		for _, form := range forms {
			t.Run(fmt.Sprintf("%s %s", k.Name, form), func(t *testing.T) {
				p, err := k.New(s, form, samples(s))
				if err != nil {
					t.Fatal(err)
				}
				rapid.Check(t, func(t *rapid.T) {
					base := s.NewFrame()
					*base = drawFrame(t, s, s.NewFrame())
					sent := make([]schema.Frame, rapid.IntRange(1, most).Draw(t, "rows"))
					got := make([]schema.Frame, len(sent))
					for i := range sent {
						sent[i], got[i] = drawFrame(t, s, base), drawFrame(t, s, base)
					}
					if rapid.IntRange(0, 9).Draw(t, "first") == 0 || !k.Delta {
						base = nil
					}
					payload, err := p.Append(nil, base, sent)
					if err != nil {
						t.Fatal(err)
					}
					if err := p.Decode(got, base, payload); err != nil {
						t.Fatalf("%v: %x", err, payload)
					}
					for i := range sent {
						if !sent[i].Equal(&got[i]) {
							t.Fatalf("frame %d of %d:\nsent %v\ngot  %v", i, len(sent), sent[i], got[i])
						}
					}
				})
			})
		}
	}
}

// TestStill trains peers on a player at rest.
func TestStill(t *testing.T) {
	s := everything(t)
	still := make([]Sample, 100)
	for i := range still {
		still[i] = Sample{s.NewFrame(), []schema.Frame{*s.NewFrame()}}
	}
	moved := *s.NewFrame()
	moved.Ints[0], moved.Ints[20], moved.Bytes[1] = -70000, 1, []byte("hello")
	for _, k := range Kinds() {
		p, err := k.New(s, k.Forms[0], still)
		if err != nil {
			t.Fatalf("%s: %v", k.Name, err)
		}
		for _, f := range []schema.Frame{*s.NewFrame(), moved} {
			payload, err := p.Append(nil, still[0].Base, []schema.Frame{f})
			if err != nil {
				t.Fatalf("%s: %v", k.Name, err)
			}
			got := []schema.Frame{*s.NewFrame()}
			if err := p.Decode(got, still[0].Base, payload); err != nil || !got[0].Equal(&f) {
				t.Errorf("%s: %v: sent %v, got %v", k.Name, err, f, got[0])
			}
		}
	}
}

// TestFullSize checks the size of full frames against inspect.FullBits.
func TestFullSize(t *testing.T) {
	s := everything(t)
	p, err := newFull(s, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		f := drawFrame(t, s, s.NewFrame())
		payload, err := p.Append(nil, nil, []schema.Frame{f})
		if err != nil {
			t.Fatal(err)
		}
		if want := (inspect.FullBits(s, &f) + 7) / 8; len(payload) > want+1 || len(payload) < want {
			t.Errorf("%d bytes, want %d", len(payload), want)
		}
	})
}
