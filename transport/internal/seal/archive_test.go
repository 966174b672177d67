package seal

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestArchive opens datagrams of several epochs in any order, again and again.
func TestArchive(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, suite := range []Suite{None, AES128GCM, AES128CTRHMAC8} {
		secret := [32]byte{1, byte(suite)}
		sealer := NewSealer(suite, secret)
		aad := []byte("header")
		type datagram struct {
			number        uint64
			plain, sealed []byte
		}
		var all []datagram
		for epoch := range uint64(5) {
			for n := range uint64(3) {
				d := datagram{number: epoch<<EpochBits + 1000*n, plain: fmt.Appendf(nil, "%d of epoch %d", n, epoch)}
				d.sealed = sealer.Seal(nil, aad, d.plain, d.number)
				all = append(all, d)
			}
		}
		archive := NewArchive(suite, secret)
		if archive.Suite() != suite {
			t.Errorf("%v, want %v", archive.Suite(), suite)
		}
		for range 100 {
			d := all[rng.IntN(len(all))]
			plain, ok := archive.Open([]byte("dst"), aad, d.sealed, d.number)
			if !ok || !bytes.Equal(plain, append([]byte("dst"), d.plain...)) {
				t.Fatalf("%v, number %d: %q, %v", suite, d.number, plain, ok)
			}
			if suite == None {
				continue
			}
			for _, number := range []uint64{d.number + 1, d.number ^ 1<<EpochBits, MaxArchive << EpochBits} {
				if plain, ok := archive.Open([]byte("dst"), aad, d.sealed, number); ok || string(plain) != "dst" {
					t.Fatalf("%v: number %d opens as %d", suite, d.number, number)
				}
			}
		}
	}
}
