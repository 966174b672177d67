// Gameloop: a dedicated server with its own game loop. Frames arrive at 60 Hz from several clients.
// The game loop handles them at 30 Hz with Poll, on its goroutine, so the game's state needs no
// locks.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/schema"
)

// ServerMove contains the arguments of the RPC.
type ServerMove struct {
	Wish    schema.Vec2  `uplink:"resolution=0.01,min=-1,max=1"` // wanted direction
	Aim     schema.Angle `uplink:"bits=12"`
	Buttons uint8        `uplink:"kind=bits"`
}

// avatar is the state of a player. Only the game loop uses it.
type avatar struct {
	position schema.Vec2
	last     ServerMove
	moves    int
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	avatars := map[*ds.Player]*avatar{}
	srv, err := ds.Listen("127.0.0.1:0", ds.Config{
		Poll:   true, // handlers, Joined and Left run in Poll
		Joined: func(p *ds.Player) { avatars[p] = &avatar{} },
		Left:   func(p *ds.Player, _ error) { delete(avatars, p) },
	})
	if err != nil {
		return err
	}
	defer srv.Close()
	err = ds.Handle(srv, "ServerMove", func(p *ds.Player, f ds.Frame[ServerMove]) {
		a := avatars[p]
		const step = 5.0 / 60                // meters per frame
		frames := step * float64(1+f.Missed) // a missed frame was most likely like the next one
		a.position.X += f.Value.Wish.X * frames
		a.position.Y += f.Value.Wish.Y * frames
		a.moves++
		a.last = f.Value
	})
	if err != nil {
		return err
	}
	go srv.Serve(ctx)
	for i := range 3 {
		if err := startClient(ctx, srv.Addr().String(), i); err != nil {
			return err
		}
	}

	tick := time.NewTicker(time.Second / 30)
	defer tick.Stop()
	for n := range 60 {
		<-tick.C
		handled := srv.Poll()
		if n%20 == 19 {
			fmt.Printf("tick %d: %d players, %d calls since the last tick\n", n, len(avatars), handled)
		}
	}
	for p, a := range avatars {
		fmt.Printf("player %016x: at %.2f after %d moves, aim %.0f°, RTT %v\n",
			p.ID(), a.position, a.moves, a.last.Aim, p.RTT().Round(time.Microsecond))
	}
	return nil
}

// startClient starts a client that plays until the process ends.
func startClient(ctx context.Context, addr string, number int) error {
	// Without a preset each call leaves at once, so that one loop of the server has calls to
	// handle.
	conn, err := client.Dial(ctx, addr, client.Config{})
	if err != nil {
		return err
	}
	move, err := client.Bind[ServerMove](ctx, conn, "ServerMove", client.BindConfig{RateHz: 60})
	if err != nil {
		return err
	}
	go func() {
		for range time.Tick(time.Second / 60) {
			m := ServerMove{Wish: schema.Vec2{X: float64(number) / 2, Y: 1}, Aim: schema.Angle(30 * number)}
			if _, err := move.Send(&m); err != nil {
				log.Print(err)
			}
		}
	}()
	return nil
}
