package cubes

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

func TestLoad(t *testing.T) {
	frames, err := Load("../../testdata/traces/cubes_delta_data_2000.bin.gz")
	uplinktest.Must(t, err)
	if len(frames) != 2000 {
		t.Fatalf("%d frames", len(frames))
	}
	changed, mostChanged := 0, 0
	for n := 1; n < len(frames); n++ {
		here := 0
		for i := range frames[n] {
			if frames[n][i] != frames[n-1][i] {
				here++
			}
		}
		changed, mostChanged = changed+here, max(mostChanged, here)
	}
	if mean := float64(changed) / 1999; mean < 30 || mean > 60 || mostChanged > 110 {
		t.Errorf("%.1f cubes a frame change, %d at most", mean, mostChanged)
	}
	for i := range frames[1000] {
		q := frames[1000][i].Orientation()
		if n := q.X*q.X + q.Y*q.Y + q.Z*q.Z + q.W*q.W; math.Abs(n-1) > 1e-9 {
			t.Fatalf("cube %d: %v has length %v", i, q, math.Sqrt(n))
		}
	}
}

// encode writes one frame of equal cubes.
func encode(c Cube) []byte {
	var f Frame
	for i := range f {
		f[i] = c
	}
	return Append(nil, &f)
}

var good = Cube{Largest: 2, Smallest: [3]int32{0, 511, 256}, Position: [3]int32{512, -1024, 256}, Interacting: 1}

// TestLoadByContent: what a file is called does not matter.
func TestLoadByContent(t *testing.T) {
	plain := encode(good)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(plain); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "recording.gz")
	for _, content := range [][]byte{plain, packed.Bytes()} {
		uplinktest.Must(t, os.WriteFile(path, content, 0o600))
		if frames, err := Load(path); err != nil || len(frames) != 1 {
			t.Error(len(frames), err)
		}
		uplinktest.Must(t, os.WriteFile(path, content[:5], 0o600))
		if frames, err := Load(path); len(frames) > 0 || err == nil {
			t.Error(len(frames), err)
		}
	}
}

func TestRead(t *testing.T) {
	frames, err := Read(bytes.NewReader(append(encode(good), encode(good)...)))
	if err != nil || len(frames) != 2 {
		t.Fatal(len(frames), err)
	}
	c := &frames[1][Count-1]
	if p := c.Meters(); p.X != 1 || p.Y != -2 || p.Z != 0.5 {
		t.Error(p)
	}
	if q := c.Orientation(); math.Abs(q.X+math.Sqrt2/2) > 1e-9 || math.Abs(q.Y-math.Sqrt2/2) > 1e-9 || math.Abs(q.W) > 0.002 || q.Z != 0 {
		t.Error(q)
	}
	if _, err := Read(bytes.NewReader(encode(good)[:frameSize-1])); !errors.Is(err, ErrForeign) {
		t.Error(err)
	}
	if _, err := Read(bytes.NewReader(append(encode(good), 0))); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	for _, bad := range []Cube{{Largest: 4}, {Smallest: [3]int32{0: -1}}, {Smallest: [3]int32{2: 512}}, {Interacting: 2}} {
		if _, err := Read(bytes.NewReader(encode(bad))); err == nil || !strings.Contains(err.Error(), "frame 0: cube 0: ") {
			t.Error(bad, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(encode(good))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, b []byte) {
		frames, err := Read(bytes.NewReader(b))
		if err == nil && len(frames)*frameSize != len(b) {
			t.Fatalf("%d frames of %d bytes", len(frames), len(b))
		}
		for i := range frames {
			for k := range frames[i] {
				_ = frames[i][k].Orientation()
			}
		}
	})
}

// TestAppend: what is written is read again, orientations within half a step.
func TestAppend(t *testing.T) {
	var f Frame
	for i := range f {
		a := float64(i)
		q := schema.Quat{X: math.Sin(a), Y: math.Cos(2 * a), Z: math.Sin(3 * a), W: math.Cos(a)}
		n := math.Sqrt(q.X*q.X + q.Y*q.Y + q.Z*q.Z + q.W*q.W)
		q = schema.Quat{X: q.X / n, Y: q.Y / n, Z: q.Z / n, W: q.W / n}
		f[i].Turn(q)
		got := f[i].Orientation()
		if dot := math.Abs(q.X*got.X + q.Y*got.Y + q.Z*got.Z + q.W*got.W); dot < 1-2e-5 {
			t.Errorf("%v became %v", q, got)
		}
		p := schema.Vec3{X: a / 64, Y: -a / 64, Z: a / 128}
		f[i].Move(p)
		if got := f[i].Meters(); math.Abs(got.X-p.X) > 0.5/Unit || math.Abs(got.Y-p.Y) > 0.5/Unit || math.Abs(got.Z-p.Z) > 0.5/Unit {
			t.Errorf("%v became %v", p, got)
		}
		f[i].Interacting = int32(i % 2)
	}
	frames, err := Read(bytes.NewReader(Append(nil, &f)))
	if err != nil || len(frames) != 1 || frames[0] != f {
		t.Fatal(len(frames), err)
	}
}
