package rle_test

import (
	"errors"
	"fmt"

	"github.com/uplink-rpc/uplink/rle"
)

func ExampleAppendEncode() {
	fmt.Printf("% x\n", rle.AppendEncode(nil, []byte("ABCDEFG")))
	fmt.Printf("% x\n", rle.AppendEncode(nil, []byte("AAAAABCDE")))
	// Output:
	// 87 41 42 43 44 45 46 47
	// 05 41 84 42 43 44 45
}

func ExampleAppendDecode() {
	code := []byte{5, 'A', 0x84, 'B', 'C', 'D', 'E'}
	plain, err := rle.AppendDecode(nil, code, 16)
	fmt.Printf("%s %v\n", plain, err)
	_, err = rle.AppendDecode(nil, code, 8)
	fmt.Println(errors.Is(err, rle.ErrTooLong))
	// Output:
	// AAAAABCDE <nil>
	// true
}

// A codec compares the lengths of two codes before it writes the shorter one.
func ExampleEncodedLen() {
	base := []byte("position 10, 20; weapon 3")
	next := []byte("position 10, 21; weapon 3")
	diff := make([]byte, len(base))
	for i := range diff {
		diff[i] = base[i] ^ next[i]
	}
	fmt.Println(rle.EncodedLen(diff), rle.EncodedLen(next))
	// Output: 6 26
}
