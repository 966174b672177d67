package rpcdelta

import (
	"testing"

	"pgregory.net/rapid"
)

// TestRequantize: what the decoder restores quantizes to the very frame that it
// came from, so a frame can be passed on without loss. Quaternions are below.
func TestRequantize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := rapidPicker(t)
		s := pick.schema()
		f, again := s.NewFrame(), s.NewFrame()
		pick.frame(s, f, s.NewFrame())
		for i := range s.fields {
			switch field := &s.fields[i]; {
			case field.IsBytes():
				if err := s.SetBytes(again, i, s.BytesOf(f, i)); err != nil {
					t.Fatal(err)
				}
			case field.Kind == KindQuat, field.Width > 53:
				p := &s.plans[i]
				copy(again.Ints[p.at:p.at+p.n], f.Ints[p.at:])
			default:
				if err := s.QuantizeField(again, i, s.RestoreField(nil, f, i)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if !again.Equal(f) {
			t.Fatalf("%v comes back as %v", f.Ints, again.Ints)
		}
	})
}
