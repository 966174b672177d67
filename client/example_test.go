package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/transport"
)

// ServerMove has the arguments of the RPC.
type ServerMove struct {
	Location schema.Vec3    `uplink:"resolution=0.1"` // cm
	Rotation schema.Rotator `uplink:"bits=16"`        // degrees
	Buttons  uint16
}

// check ends an example after an error.
func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// listen starts a server that prints calls of ServerMove, each before it sends to the channel.
func listen() (*ds.Server, <-chan struct{}) {
	srv, err := ds.Listen("127.0.0.1:0", ds.Config{})
	check(err)
	printed := make(chan struct{})
	check(ds.Handle(srv, "ServerMove", func(_ *ds.Player, f ds.Frame[ServerMove]) {
		fmt.Printf("frame %d: %+v\n", f.Seq, f.Value)
		printed <- struct{}{}
	}))
	go func() { _ = srv.Serve(context.Background()) }()
	return srv, printed
}

// connect starts a server as listen does, and connects a client to it.
func connect(cfg client.Config) (conn *client.Conn, printed <-chan struct{}, stop func()) {
	srv, printed := listen()
	conn, err := client.Dial(context.Background(), srv.Addr().String(), cfg)
	check(err)
	return conn, printed, func() { _, _ = conn.Close(), srv.Close() }
}

// A client dials, binds an RPC once, and calls it each frame.
func Example() {
	srv, printed := listen()
	defer srv.Close()

	conn, err := client.Dial(context.Background(), srv.Addr().String(), client.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	move, err := client.Bind[ServerMove](context.Background(), conn, "ServerMove", client.BindConfig{RateHz: 60})
	if err != nil {
		log.Fatal(err)
	}
	for i := range 3 {
		m := ServerMove{Location: schema.Vec3{X: 100.04 + 0.5*float64(i)}, Rotation: schema.Rotator{Yaw: 90}, Buttons: 1}
		if _, err := move.Send(&m); err != nil {
			log.Fatal(err)
		}
		<-printed
	}
	// Output:
	// frame 0: {Location:{X:100 Y:0 Z:0} Rotation:{Pitch:0 Yaw:90 Roll:0} Buttons:1}
	// frame 1: {Location:{X:100.5 Y:0 Z:0} Rotation:{Pitch:0 Yaw:90 Roll:0} Buttons:1}
	// frame 2: {Location:{X:101 Y:0 Z:0} Rotation:{Pitch:0 Yaw:90 Roll:0} Buttons:1}
}

// The server calls an RPC of the client.
func ExampleHandle() {
	type Explosion struct {
		At   schema.Vec3 `uplink:"resolution=0.5"`
		Kind uint8
	}
	srv, err := ds.Listen("127.0.0.1:0", ds.Config{Joined: func(p *ds.Player) {
		explosions, err := ds.Bind[Explosion](p, "Explosion", ds.BindConfig{Reliable: true})
		check(err)
		_, err = explosions.Send(&Explosion{At: schema.Vec3{X: 10, Z: 2.5}, Kind: 1})
		check(err)
	}})
	check(err)
	defer srv.Close()
	go func() { _ = srv.Serve(context.Background()) }()

	var handlers client.Handlers
	handled := make(chan struct{})
	check(client.Handle(&handlers, "Explosion", func(c client.Call[Explosion]) {
		fmt.Printf("call %d: %+v\n", c.Seq, c.Value)
		close(handled)
	}))
	conn, err := client.Dial(context.Background(), srv.Addr().String(), client.Config{Handlers: &handlers})
	check(err)
	defer conn.Close()
	<-handled
	// Output:
	// call 0: {At:{X:10 Y:0 Z:2.5} Kind:1}
}

// The error names the difference.
func ExampleBind() {
	conn, _, stop := connect(client.Config{})
	defer stop()

	_, err := client.Bind[ServerMove](context.Background(), conn, "ServerJump", client.BindConfig{})
	fmt.Println(err)

	type Wide struct {
		Location schema.Vec3    `uplink:"resolution=0.1"`
		Rotation schema.Rotator `uplink:"bits=16"`
		Buttons  uint32
	}
	_, err = client.Bind[Wide](context.Background(), conn, "ServerMove", client.BindConfig{})
	if differs, ok := errors.AsType[*client.FieldError](err); ok {
		fmt.Printf("here:  %s\nthere: %s\n", differs.Here, differs.There)
	}
	// Output:
	// client: bind ServerJump: the server has no such RPC, nearest "ServerMove"; it has ServerMove
	// here:  Buttons uint width=32
	// there: Buttons uint width=16
}

// A value that its field cannot hold is not sent, and the stream remains usable.
func ExampleStream_Send() {
	conn, printed, stop := connect(client.Config{})
	defer stop()
	move, err := client.Bind[ServerMove](context.Background(), conn, "ServerMove", client.BindConfig{})
	check(err)

	_, err = move.Send(&ServerMove{Location: schema.Vec3{X: math.NaN()}})
	if bad, ok := errors.AsType[*schema.RangeError](err); ok {
		fmt.Println(bad.Field)
	}

	_, err = move.Send(&ServerMove{Buttons: 2})
	check(err)
	<-printed
	// Output:
	// Location
	// frame 0: {Location:{X:0 Y:0 Z:0} Rotation:{Pitch:0 Yaw:0 Roll:0} Buttons:2}
}

// All RPCs of a tick share a datagram. A call of ServerMove may also wait for the next one.
func ExampleConn_Flush() {
	conn, printed, stop := connect(client.Config{Tuning: client.Tuning{FlushOnly: true}})
	defer stop()
	move, err := client.Bind[ServerMove](context.Background(), conn, "ServerMove", client.BindConfig{
		Delay: client.DelayPolicy{MaxBatchDelay: time.Second / 60},
	})
	check(err)
	for tick := range 4 {
		_, err := move.Send(&ServerMove{Buttons: uint16(tick)})
		check(err)
		check(conn.Flush()) // at the end of each tick
	}
	check(move.Flush()) // the last call does not wait
	check(conn.Flush())
	for range 4 {
		<-printed
	}
	// Output:
	// frame 0: {Location:{X:0 Y:0 Z:0} Rotation:{Pitch:0 Yaw:0 Roll:0} Buttons:0}
	// frame 1: {Location:{X:0 Y:0 Z:0} Rotation:{Pitch:0 Yaw:0 Roll:0} Buttons:1}
	// frame 2: {Location:{X:0 Y:0 Z:0} Rotation:{Pitch:0 Yaw:0 Roll:0} Buttons:2}
	// frame 3: {Location:{X:0 Y:0 Z:0} Rotation:{Pitch:0 Yaw:0 Roll:0} Buttons:3}
}

// A client asks the server, and waits for the answer of the game.
func ExampleConn_Request() {
	srv, err := ds.Listen("127.0.0.1:0", ds.Config{Hooks: ds.Hooks{
		OnRequest: func(r *ds.Request) {
			if string(r.Message) == "price of a sword" {
				check(r.Reply([]byte("12 gold")))
				return
			}
			check(r.Fail("not for sale"))
		},
	}})
	check(err)
	defer srv.Close()
	go func() { _ = srv.Serve(context.Background()) }()
	conn, err := client.Dial(context.Background(), srv.Addr().String(), client.Config{})
	check(err)
	defer conn.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	answer, err := conn.Request(ctx, []byte("price of a sword"))
	check(err)
	fmt.Printf("%s\n", answer)
	_, err = conn.Request(ctx, []byte("price of the castle"))
	if failure, ok := errors.AsType[*client.RequestError](err); ok {
		fmt.Println(failure.Reason)
	}
	// Output:
	// 12 gold
	// not for sale
}

// A client sends a replay of any size. Close returns when the server has read all of it.
func ExampleConn_OpenStream() {
	srv, err := ds.Listen("127.0.0.1:0", ds.Config{Hooks: ds.Hooks{
		OnStream: func(_ *ds.Player, r transport.StreamReader) {
			b, err := io.ReadAll(r)
			fmt.Println(r.Name(), len(b), err)
		},
	}})
	check(err)
	defer srv.Close()
	go func() { _ = srv.Serve(context.Background()) }()
	conn, err := client.Dial(context.Background(), srv.Addr().String(), client.Config{})
	check(err)
	defer conn.Close()

	w, err := conn.OpenStream(context.Background(), "replay")
	check(err)
	_, err = w.Write(make([]byte, 100_000))
	check(err)
	check(w.Close())
	// Output:
	// replay 100000 <nil>
}
