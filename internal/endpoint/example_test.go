package endpoint_test

import (
	"context"
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
)

// greeter is the server's handler.
type greeter struct{ echo }

func (greeter) Datagram(c *endpoint.Conn, b []byte, _ time.Time) {
	_ = c.SendReliable(append([]byte("welcome, "), b...))
}

// visitor is the client's.
type visitor struct {
	echo
	greeting chan string
}

func (v visitor) Message(_ *endpoint.Conn, b []byte, _ time.Time) { v.greeting <- string(b) }

func Example() {
	listener, err := endpoint.Listen("127.0.0.1:0", endpoint.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	served := make(chan error)
	go func() { served <- listener.Serve(context.Background(), greeter{}) }()

	v := visitor{greeting: make(chan string, 1)}
	conn, err := endpoint.Dial(context.Background(), listener.Addr().String(), endpoint.Config{}, v)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := conn.Send([]byte("stranger")); err != nil {
		fmt.Println(err)
	}
	fmt.Println(<-v.greeting)

	_ = conn.Close()
	_ = listener.Close()
	fmt.Println(<-served)
	// Output:
	// welcome, stranger
	// <nil>
}
