package message

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
)

// read returns the frames of a message, and the bytes that it takes besides them in a bundle.
func read(t *testing.T, b []byte) (frames [][]byte, extra int) {
	t.Helper()
	kind, body, err := Split(b)
	if kind == Frame && err == nil {
		return [][]byte{body}, 0
	}
	for f := ParseBundle(body); err == nil && f.Left() > 0; {
		var frame []byte
		var more int
		frame, more, err = f.Next()
		frames, extra = append(frames, frame), extra+more
	}
	check.Must(t, err)
	return frames, extra
}

// TestBundle collects frames of all sizes up to a limit and parses the message.
func TestBundle(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const limit = 1197
	b := NewBundler(limit)
	if b.Take() != nil {
		t.Error("an empty Bundler has a message")
	}
	for range 2000 {
		var want [][]byte
		size, extra := 0, 0
		most := []int{3, 40, 200, 2 * limit}[rng.IntN(4)]
		for {
			frame := make([]byte, 1+rng.IntN(most))
			frame[0] = 2 // a short header
			more, ok := b.Add(frame)
			if !ok {
				if len(want) < MaxBundle && size+extra+len(frame)+3 <= limit {
					t.Fatalf("%d bytes do not fit after %d frames of %d bytes", len(frame), len(want), size+extra)
				}
				break
			}
			want, size, extra = append(want, frame), size+len(frame), extra+more
			if b.Len() != len(want) {
				t.Fatalf("%d frames, want %d", b.Len(), len(want))
			}
			if rng.IntN(10) == 0 {
				break
			}
		}
		if len(want) == 0 {
			continue
		}
		message := b.Take()
		if len(message) != size+extra || len(message) > limit || len(want) == 1 && extra != 0 {
			t.Fatalf("%d bytes of %d frames, want %d and %d", len(message), len(want), size, extra)
		}
		got, read := read(t, message)
		if !slices.EqualFunc(got, want, bytes.Equal) || read != extra || b.Len() != 0 {
			t.Fatalf("%d frames, want %d; %d bytes more, want %d", len(got), len(want), read, extra)
		}
	}
}

// TestBundleBytes checks the layout.
func TestBundleBytes(t *testing.T) {
	b := NewBundler(20)
	for _, s := range []string{"abc", "", "de"} {
		if _, ok := b.Add([]byte(s)); !ok {
			t.Fatal("no room")
		}
	}
	want := append([]byte{byte(Bundle) | 1, 3}, "abc\x00de"...)
	if got := b.Take(); !bytes.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// checkBundle reads a bundle, and checks that what is read is not larger than it.
func checkBundle(t testing.TB, b, body []byte) {
	t.Helper()
	total, n := 1, 0
	again, whole := NewBundler(len(b)+MaxBundle), true
	for r := ParseBundle(body); r.Left() > 0; n++ {
		frame, _, err := r.Next()
		if err != nil {
			if r.Left() != 0 {
				t.Fatalf("%d frames are left after %v", r.Left(), err)
			}
			whole = false
			break
		}
		again.Add(frame)
		total += len(frame)
	}
	if n > MaxBundle || total > len(b) {
		t.Fatalf("%d frames of %d bytes in %d", n, total, len(b))
	}
	if m := again.Take(); whole && len(m) > len(b) {
		t.Fatalf("%x, read from %x", m, b)
	}
}
