package fnv

import (
	"hash/fnv"
	"testing"
)

// TestEqualsStandardLibrary compares hashes of bytes with hash/fnv.
func TestEqualsStandardLibrary(t *testing.T) {
	for _, s := range []string{"", "a", "uplink", "\x00\xff"} {
		want := fnv.New64a()
		_, _ = want.Write([]byte(s))
		if got := Offset.AddBytes([]byte(s)); uint64(got) != want.Sum64() {
			t.Errorf("%q: %x, want %x", s, got, want.Sum64())
		}
	}
}

func TestWords(t *testing.T) {
	if h := (Offset ^ 3).Add(2); h != (Offset ^ 1).Add(0) {
		t.Errorf("%x", h)
	}
	if got := Hash(0x0001_0020_0300_4000).Fold16(); got != 0x4321 {
		t.Errorf("folded to %#x", got)
	}
}
