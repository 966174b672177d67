package seal

import (
	"bytes"
	"fmt"
	"testing"
)

// TestArchive opens datagrams of several epochs in any order, again and again.
func TestArchive(t *testing.T) {
	aad := []byte("header")
	for _, suite := range allSuites {
		sealer, archive := NewSealer(suite, [32]byte{1}), NewArchive(suite, [32]byte{1})
		sealed := map[uint64][]byte{}
		for n := range uint64(15) {
			number := n/3<<EpochBits + n%3*1000
			sealed[number] = sealer.Seal(nil, aad, fmt.Append(nil, number), number)
		}
		for range 10 {
			for number, b := range sealed { // in random order
				if plain, ok := archive.Open([]byte("dst"), aad, b, number); !ok || !bytes.Equal(plain, fmt.Append([]byte("dst"), number)) {
					t.Fatalf("%v, number %d: %q, %v", suite, number, plain, ok)
				}
				for _, other := range []uint64{number + 1, number ^ 1<<EpochBits, MaxArchive << EpochBits} {
					if plain, ok := archive.Open([]byte("dst"), aad, b, other); suite != None && (ok || string(plain) != "dst") {
						t.Fatalf("%v: number %d opens as %d", suite, number, other)
					}
				}
			}
		}
	}
}
