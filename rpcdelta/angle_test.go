package rpcdelta

import "testing"

func TestAnglesWrap(t *testing.T) {
	s := mustSchema(t, Field{Name: "Yaw", Kind: KindAngle, Bits: 16})
	f := s.NewFrame()
	for _, c := range []struct {
		degrees float64
		want    int32
		back    float64
	}{
		{0, 0, 0},
		{90, 1 << 14, 90},
		{180, 1 << 15, -180},
		{-180, 1 << 15, -180},
		{179.999, 1 << 15, -180}, // rounds up to the half turn
		{179.99, 32766, 179.98901367},
		{-90, 3 << 14, -90},
		{270, 3 << 14, -90},
		{360, 0, 0},
		{-360, 0, 0},
		{359.999, 0, 0},
		{720.5, 91, 0.49987793}, // 0.5 is 91.02 steps
		{-719.5, 91, 0.49987793},
		{-0.5, 65445, -0.49987793},
		{1e9, 50972, -80.00244141}, // 2,777,777 turns and 280 degrees
	} {
		if err := s.QuantizeField(f, 0, []float64{c.degrees}); err != nil {
			t.Fatal(err)
		}
		if f.Ints[0] != c.want {
			t.Errorf("%v degrees: %d, want %d", c.degrees, f.Ints[0], c.want)
		}
		if back := s.RestoreField(nil, f, 0)[0]; back < c.back-1e-8 || back > c.back+1e-8 {
			t.Errorf("%v degrees come back as %.8f, want %.8f", c.degrees, back, c.back)
		}
	}
}

// TestAngleComponents: every integer of a small angle comes back as itself.
func TestAngleComponents(t *testing.T) {
	for _, bits := range []int{2, 3, 12} {
		s := mustSchema(t, Field{Name: "A", Kind: KindAngle, Bits: bits})
		f := s.NewFrame()
		for v := range int32(1) << bits {
			f.Ints[0] = v
			back := s.RestoreField(nil, f, 0)
			if back[0] < -180 || back[0] >= 180 {
				t.Fatalf("%d of %d bits is %v degrees", v, bits, back[0])
			}
			if err := s.QuantizeField(f, 0, back); err != nil || f.Ints[0] != v {
				t.Fatalf("%d of %d bits comes back as %d, %v", v, bits, f.Ints[0], err)
			}
		}
	}
}
