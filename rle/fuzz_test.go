package rle

import (
	"bytes"
	"testing"
)

func FuzzDecode(f *testing.F) {
	f.Add([]byte{}, 0)
	f.Add([]byte{0}, 10)
	f.Add([]byte{5}, 10)
	f.Add([]byte{0x84, 0x41, 0x42}, 10)
	f.Add([]byte{0x80, 0, 0x80, 0}, 200)
	f.Add([]byte{1, 0x41, 1, 0x42, 0x83, 1, 2, 3}, 5)
	f.Fuzz(func(t *testing.T, code []byte, limit int) {
		before := bytes.Clone(code)
		plain, err := AppendDecode([]byte("dst"), code, limit)
		if !bytes.Equal(code, before) {
			t.Fatal("decoding changed the input")
		}
		if !bytes.HasPrefix(plain, []byte("dst")) {
			t.Fatalf("dst became %x", plain)
		}
		plain = plain[3:]
		if err != nil {
			if len(plain) != 0 {
				t.Fatalf("%v, but %d bytes appended", err, len(plain))
			}
			return
		}
		if len(plain) > max(limit, 0) {
			t.Fatalf("%d bytes, limit %d", len(plain), limit)
		}
		if n := EncodedLen(plain); n > len(code) {
			t.Fatalf("the shortest code has %d bytes, this one %d: %x", n, len(code), code)
		}
		check(t, plain, EncodedLen(plain))
	})
}
