// Jitterbuffer: a dedicated server that handles exactly one call per player and tick, although the
// network has jitter and loses 2 % of all datagrams. Calls wait in a jitter buffer until their
// tick, and the clients' clocks follow the server's reports about it.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// ServerMove contains the arguments of the RPC.
type ServerMove struct {
	Wish    schema.Vec2 `uplink:"resolution=0.01,min=-1,max=1"` // wanted direction
	Buttons uint8       `uplink:"kind=bits"`
}

const (
	tick    = time.Second / 60
	seconds = 4
)

// avatar is the state of a player.
type avatar struct {
	position        schema.Vec2
	moved, repeated int
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	world := map[*ds.Player]*avatar{}
	srv, err := ds.Listen("127.0.0.1:0", ds.Config{
		Poll:   true,
		TickHz: 60, // how often Poll is called
		Joined: func(p *ds.Player) { world[p] = &avatar{} },
	})
	if err != nil {
		return err
	}
	defer srv.Close()
	err = ds.Handle(srv, "ServerMove", func(p *ds.Player, f ds.Frame[ServerMove]) {
		a := world[p]
		if f.Repeated {
			a.repeated++
		} else {
			a.moved++
		}
		const step = 5.0 / 60 // meters per tick
		a.position.X += f.Value.Wish.X * step
		a.position.Y += f.Value.Wish.Y * step
	}, ds.JitterBuffer{Repeat: 3}) // a missing call is replaced by the last one, at most three times in a row
	if err != nil {
		return err
	}
	go srv.Serve(ctx)
	for i := range 3 {
		go func() { log.Print(play(ctx, srv.Addr().String(), uint64(i))) }()
	}

	next := time.Now()
	for n := range 60 * seconds {
		next = next.Add(tick)
		time.Sleep(time.Until(next)) // after a delay, the missed ticks follow at once
		srv.Poll()                   // handles one call of each player
		if n%60 != 59 {
			continue
		}
		st := srv.Stats().RPCs[0].Buffer
		fmt.Printf("second %d: slack %.0f ms, target %.0f ms; %d calls released, %d missing ticks, %d repetitions\n",
			n/60+1, ms(st.Slack), ms(st.Target), st.Released, st.Missing, st.Repeated)
	}
	for p, a := range world {
		fmt.Printf("player %016x: at %.2f after %d calls and %d repetitions, RTT %v\n",
			p.ID(), a.position, a.moved, a.repeated, p.RTT().Round(time.Millisecond))
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// play runs a client until the process ends.
func play(ctx context.Context, addr string, number uint64) error {
	link := simnet.Config{Delay: 20 * time.Millisecond, Jitter: 10 * time.Millisecond, Loss: 0.02, Seed: number}
	network, err := simnet.WrapNetwork(transport.UDP(), link, link)
	if err != nil {
		return err
	}
	// Without a preset no call waits at the client, so that the buffer shows the network's jitter
	// only.
	conn, err := client.Dial(ctx, addr, client.Config{Network: network})
	if err != nil {
		return err
	}
	move, err := client.Bind[ServerMove](ctx, conn, "ServerMove", client.BindConfig{RateHz: 60})
	if err != nil {
		return err
	}
	for next := time.Now(); ; {
		if _, err := move.Send(&ServerMove{Wish: schema.Vec2{X: float64(number) / 2, Y: 1}}); err != nil {
			return err
		}
		// The client makes its ticks slightly shorter or longer, as the server needs them.
		next = next.Add(move.Pace().Interval(tick))
		time.Sleep(time.Until(next))
	}
}
