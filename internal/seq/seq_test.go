package seq

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestUnwrap compares Unwrap with its definition: of all numbers with the low bits, the one between
// behind below next and 2^width - behind above it.
func TestUnwrap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.UintRange(1, 16).Draw(t, "width")
		turn := uint64(1) << width
		next := rapid.OneOf(rapid.Uint64Range(0, 3*turn), rapid.Uint64Range(0, 1<<63)).Draw(t, "next")
		behind := rapid.Uint64Range(0, turn-1).Draw(t, "behind")
		low := rapid.Uint64Range(0, turn-1).Draw(t, "low")
		got := Unwrap(low, width, next, behind)
		want := next - min(behind, next)
		for want%turn != low {
			want++
		}
		if got != want {
			t.Fatalf("Unwrap(%d, %d, %d, %d) = %d, want %d", low, width, next, behind, got, want)
		}
		near := Nearest(low, width, next)
		if near%turn != low || near < next && next-near > turn/2 || near >= max(turn, next+turn/2) {
			t.Fatalf("Nearest(%d, %d, %d) = %d", low, width, next, near)
		}
	})
}

// TestWindow compares a window with the set of all numbers that were added.
func TestWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w Window
		start := rapid.Uint64Range(0, 1<<40).Draw(t, "start")
		added, newest := map[uint64]bool{}, uint64(0)
		for _, step := range rapid.SliceOf(rapid.Uint64Range(0, 200)).Draw(t, "numbers") {
			n := start + step
			w.Add(n)
			if newest = max(newest, n); n+WindowSize >= newest {
				added[n] = true
			}
			if !w.Any || w.Newest != newest {
				t.Fatalf("newest %d, want %d", w.Newest, newest)
			}
			want := []uint64{}
			for n := newest; n+WindowSize >= newest; n-- {
				if w.Has(n) != added[n] {
					t.Fatalf("Has(%d) = %v below %d", n, w.Has(n), newest)
				}
				if added[n] {
					want = append(want, n)
				}
				if n == 0 {
					break
				}
			}
			if got := slices.Collect(Acked(w.Newest, w.Bits)); !slices.Equal(got, want) {
				t.Fatalf("acked %d, want %d", got, want)
			}
			if w.Has(newest + 1) {
				t.Fatalf("Has(%d) above the newest", newest+1)
			}
		}
		if !w.Any && (w != (Window{}) || w.Has(0)) {
			t.Fatalf("empty window %+v, has 0: %v", w, w.Has(0))
		}
	})
}

func TestAckedWraps(t *testing.T) {
	if got := slices.Collect(Acked(uint16(1), 7)); !slices.Equal(got, []uint16{1, 0, 65535, 65534}) {
		t.Errorf("acked %d", got)
	}
	for n := range Acked(uint64(9), ^uint64(0)) {
		if n == 5 {
			break
		}
	}
}

// FuzzParseBits parses arbitrary bytes: what is accepted is appended again unchanged.
func FuzzParseBits(f *testing.F) {
	f.Add([]byte{1, 2, 3}, uint8(2))
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255}, uint8(8))
	f.Add([]byte{}, uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, size uint8) {
		n := int(size % 9)
		v, rest, ok := ParseBits(b, n)
		if ok != (len(b) >= n) {
			t.Fatalf("%d of %d bytes: %v", n, len(b), ok)
		}
		if !ok {
			return
		}
		if got := append(AppendBits(nil, v, n), rest...); !bytes.Equal(got, b) {
			t.Fatalf("%x became %x", b, got)
		}
		if want := len(bytes.TrimRight(b[:n], "\x00")); ByteLen(v) != want {
			t.Fatalf("%#x takes %d bytes, want %d", v, ByteLen(v), want)
		}
	})
}

func TestWindowBits(t *testing.T) {
	w := Window{Any: true, Newest: 100, Bits: 0b1011}
	if w.Low(2) != 3 || w.Low(3) != 3 || w.Low(64) != 0b1011 || Mask(0) != 0 || Mask(64) != ^uint64(0) {
		t.Errorf("low bits %b, %b", w.Low(2), w.Low(3))
	}
}
