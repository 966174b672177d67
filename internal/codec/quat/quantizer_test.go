package quat

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
)

// TestQuantizer verifies that rows dequantize to unit quaternions and quantize to the same rows.
func TestQuantizer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lo := rapid.Int32Range(-1<<14, 1<<14).Draw(t, "lo")
		hi := lo + rapid.Int32Range(2, 1<<15).Draw(t, "span")
		g := NewQuantizer(lo, hi)
		row := []int32{rapid.Int32Range(0, 3).Draw(t, "index"), 0, 0, 0}
		for k := range row[1:] {
			row[1+k] = rapid.Int32Range(lo, hi).Draw(t, "component")
		}
		var q Fixed
		g.Unpack(&q, row)
		sum, k := int64(0), 1
		for i, v := range q {
			sum += v * v
			if i == int(row[0]) {
				continue
			}
			if off := fixed.Abs(g.Pack(v) - int64(row[k])*16); off > 8 {
				t.Fatalf("component %d of %v is %d/16 off", k, row, off)
			}
			k++
		}
		if largest := q[row[0]]; largest < 0 || largest > 0 && fixed.Abs(sum-One*One) > 4*One {
			t.Fatalf("%v is %v, of length^2 %d/2^32", row, q, sum)
		}
	})
}
