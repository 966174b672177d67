package statesync

import (
	"math/bits"
	"testing"

	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// TestUnlikely checks the upper bound of the bits that end a packet.
func TestUnlikely(t *testing.T) {
	for p := 24; p <= 65536-24; p++ {
		left := 65536 - p // of 65536, that it is false
		if n := falseBits(rangecoder.Prob{P: uint16(p)}); left<<n < 65536 || n > bits.Len(uint(65536/left))+1 {
			t.Fatalf("%d of 65536 counts %d bits", left, n)
		}
	}
}
