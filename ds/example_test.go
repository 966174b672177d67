package ds_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// ServerMove is a call's arguments.
type ServerMove struct {
	Location schema.Vec3 `uplink:"resolution=0.1"` // cm
	Buttons  uint16
}

// call is a client that makes three calls.
func call(addr string) *client.Conn {
	conn, err := client.Dial(context.Background(), addr, client.Config{})
	if err != nil {
		log.Fatal(err)
	}
	move, err := client.Bind[ServerMove](context.Background(), conn, "ServerMove", client.BindConfig{})
	if err != nil {
		log.Fatal(err)
	}
	for i := range 3 {
		if _, err := move.Send(&ServerMove{Location: schema.Vec3{X: 2.5 * float64(i)}, Buttons: 4}); err != nil {
			log.Fatal(err)
		}
	}
	return conn
}

// Handlers run as frames arrive, on a goroutine that Serve starts.
func Example() {
	srv, err := ds.Listen("127.0.0.1:0", ds.Config{})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	err = ds.Handle(srv, "ServerMove", func(_ *ds.Player, f ds.Frame[ServerMove]) {
		fmt.Printf("frame %d, %d missed: %+v\n", f.Seq, f.Missed, f.Value)
		if f.Seq == 2 {
			cancel()
		}
	})
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		defer call(srv.Addr().String()).Close()
		<-ctx.Done()
	}()
	fmt.Println(srv.Serve(ctx))
	// Output:
	// frame 0, 0 missed: {Location:{X:0 Y:0 Z:0} Buttons:4}
	// frame 1, 0 missed: {Location:{X:2.5 Y:0 Z:0} Buttons:4}
	// frame 2, 0 missed: {Location:{X:5 Y:0 Z:0} Buttons:4}
	// <nil>
}

// A game with a tick of its own has handlers run there.
func ExampleServer_Poll() {
	srv, err := ds.Listen("127.0.0.1:0", ds.Config{Poll: true})
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	err = ds.Handle(srv, "ServerMove", func(_ *ds.Player, f ds.Frame[ServerMove]) {
		fmt.Printf("frame %d: %+v\n", f.Seq, f.Value)
	})
	if err != nil {
		log.Fatal(err)
	}
	go func() { _ = srv.Serve(context.Background()) }()
	defer call(srv.Addr().String()).Close()

	tick := time.NewTicker(time.Second / 30)
	defer tick.Stop()
	for frames := 0; frames < 3; <-tick.C {
		frames += srv.Poll()
	}
	// Output:
	// frame 0: {Location:{X:0 Y:0 Z:0} Buttons:4}
	// frame 1: {Location:{X:2.5 Y:0 Z:0} Buttons:4}
	// frame 2: {Location:{X:5 Y:0 Z:0} Buttons:4}
}
