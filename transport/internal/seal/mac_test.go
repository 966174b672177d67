package seal

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"testing"

	"pgregory.net/rapid"
)

// TestMACIsHMAC writes texts in pieces around the sizes of a block and of the buffer.
func TestMACIsHMAC(t *testing.T) {
	scratch := newMACScratch() // shared by all keys, as it may be
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOfN(rapid.Byte(), 0, sha256.BlockSize).Draw(t, "key")
		m := newMAC(key, scratch)
		for range rapid.IntRange(1, 3).Draw(t, "texts") {
			want := hmac.New(sha256.New, key)
			scratch.begin(&m)
			for _, size := range rapid.SliceOfN(rapid.IntRange(0, 600), 0, 5).Draw(t, "sizes") {
				piece := bytes.Repeat([]byte{byte(size)}, size)
				scratch.write(piece)
				want.Write(piece)
			}
			if got, want := scratch.end(&m), want.Sum(nil); !bytes.Equal(got, want) {
				t.Fatalf("MAC %x, want %x", got, want)
			}
		}
	})
}

// TestMACOfEachSize writes texts of each size, behind a first piece that is in the buffer or is not, and
// ends anywhere in a block.
func TestMACOfEachSize(t *testing.T) {
	scratch := newMACScratch()
	m := newMAC([]byte("key"), scratch)
	text := bytes.Repeat([]byte{7}, 1000)
	for _, first := range []int{0, 1, 36, 127, 128, 129, 140, 180, 191, 192, 193} {
		for size := range 320 {
			scratch.begin(&m)
			scratch.write(text[:first])
			scratch.write(text[:size])
			want := hmac.New(sha256.New, []byte("key"))
			want.Write(text[:first+size])
			if got, want := scratch.end(&m), want.Sum(nil); !bytes.Equal(got, want) {
				t.Fatalf("MAC of %d and %d bytes: %x, want %x", first, size, got, want)
			}
		}
	}
}
