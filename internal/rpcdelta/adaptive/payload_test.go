package adaptive_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/adaptive"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// trainedEnd returns an end that has learned 200 random frames, and 210 frames.
func trainedEnd(m *adaptive.Model, fields []adaptive.Field) (*end, []*schema.Frame) {
	e := newEnd(m, fields, 64)
	r := rand.New(rand.NewPCG(3, 4))
	var frames []*schema.Frame
	var old *schema.Frame
	for i := range 210 {
		old = randomFrame(r, fields, old)
		frames = append(frames, old)
		if i < 200 {
			e.learn(uint64(i), old)
		}
	}
	return e, frames
}

func FuzzDecode(f *testing.F) {
	m := adaptive.Generic().Compile(allKinds)
	e, frames := trainedEnd(m, allKinds)
	out := newFrames(allKinds)
	for n := 1; n <= 4; n++ {
		f.Add(true, uint8(8), e.encode(nil, frames[208-n:208], 207, 199, true))
		f.Add(false, uint8(0), e.encode(nil, frames[208-n:208], 207, 0, false))
	}
	f.Add(true, uint8(1), []byte(nil))
	f.Fuzz(func(t *testing.T, hasBase bool, distance uint8, in []byte) {
		base := 207 - uint64(distance)
		n, err := e.decode(out, in, 207, base, hasBase)
		if err != nil {
			return
		}
		if n < 1 || n > adaptive.MaxFrames {
			t.Fatalf("%d frames", n)
		}
		for _, r := range out[:n] {
			if !inRange(allKinds, r) {
				t.Fatalf("out of range: %v", r)
			}
		}
		again := e.encode(nil, out[:n], 207, base, hasBase)
		back := newFrames(allKinds)
		if k, err := e.decode(back, again, 207, base, hasBase); err != nil || k != n {
			t.Fatalf("encoded again: %d of %d frames, %v", k, n, err)
		}
		for i := range n {
			if !equal(out[i], back[i]) {
				t.Fatalf("frame %d: %v became %v", i, out[i], back[i])
			}
		}
	})
}

func TestDecodeTrailingBytes(t *testing.T) {
	m := adaptive.Generic().Compile(vehicleFields)
	e, frames := trainedEnd(m, vehicleFields)
	out := newFrames(vehicleFields)
	good := e.encode(nil, frames[205:206], 205, 199, true)
	good = good[:len(good):len(good)]
	for _, bad := range [][]byte{append(good, 0), append(good, 1, 2, 3, 4, 5, 6, 7, 8, 9)} {
		if _, err := e.decode(out, bad, 205, 199, true); err == nil {
			t.Errorf("%d bytes were decoded, the payload has %d", len(bad), len(good))
		}
	}
}

func TestUnknownBaseline(t *testing.T) {
	m := adaptive.Generic().Compile(vehicleFields)
	e := newEnd(m, vehicleFields, 64)
	frames := smoothFrames(100)
	for i, frame := range frames[:50] {
		e.learn(uint64(i), frame)
	}
	out := newFrames(vehicleFields)
	for _, base := range []uint64{0, 48, 50, 60, 1 << 40, 1<<64 - 1} {
		if _, err := e.decode(out, nil, 60, base, true); !errors.Is(err, adaptive.ErrBaseline) {
			t.Errorf("baseline %d: %v", base, err)
		}
	}
	if _, err := e.decode(out, nil, 120, 49, true); !errors.Is(err, adaptive.ErrBaseline) {
		t.Errorf("a baseline beyond the ring: %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("encoding against an unknown baseline did not panic")
		}
	}()
	e.encode(nil, frames[60:61], 60, 55, true)
}
