package ringcache_test

import (
	"fmt"

	"github.com/uplink-rpc/uplink/ringcache"
)

// The last three frames are kept; their backing arrays are made once.
func ExampleRing() {
	frames := ringcache.NewFunc(3, func(frame *[]int32) {
		*frame = make([]int32, 0, 2)
	})
	for seq := range uint64(5) {
		frame := frames.Put(seq)
		*frame = append((*frame)[:0], int32(seq), int32(10*seq))
	}
	for seq := range uint64(6) {
		if frame := frames.Get(seq); frame != nil {
			fmt.Println(seq, *frame)
		} else {
			fmt.Println(seq, "is not here")
		}
	}
	// Output:
	// 0 is not here
	// 1 is not here
	// 2 [2 20]
	// 3 [3 30]
	// 4 [4 40]
	// 5 is not here
}
