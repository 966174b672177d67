package rle_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/rle"
)

// TestToken: tokens add up to a code and to what it stands for.
func TestToken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := rapid.SliceOf(rapid.ByteMax(2)).Draw(t, "src")
		code, plain := rle.AppendEncode(nil, src), 0
		for len(code) > 0 {
			n, size := rle.Token(code[0])
			plain, code = plain+n, code[size:]
		}
		if plain != len(src) {
			t.Fatalf("%d bytes of %d", plain, len(src))
		}
	})
}
