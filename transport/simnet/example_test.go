package simnet_test

import (
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/transport/simnet"
)

func ExampleQueue() {
	link, err := simnet.NewLink(simnet.Config{Delay: 40 * time.Millisecond, Loss: 0.5, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	queue := simnet.NewQueue[string](link)
	for i, packet := range []string{"a", "b", "c", "d"} {
		queue.Push(time.Duration(i)*10*time.Millisecond, packet, 100)
	}
	for {
		now, ok := queue.Next()
		if !ok {
			break
		}
		packet, at, _ := queue.Pop(now)
		fmt.Println(at, packet)
	}
	// Output:
	// 60ms c
	// 70ms d
}
