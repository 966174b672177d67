// Quickstart: one client, one dedicated server, one RPC. The client calls it 60 times in one
// second; each call is coded as a delta from one that the server has acknowledged. On loopback no
// keys are needed; see example issuer for keys and tokens.
package main

import (
	"context"
	"fmt"
	"log"
	"math"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/schema"
)

// ServerMove contains the arguments of the RPC.
type ServerMove struct {
	Location schema.Vec3    `uplink:"resolution=0.1"` // cm
	Rotation schema.Rotator `uplink:"bits=16"`        // degrees
	Throttle float32        `uplink:"resolution=0.01"`
	Buttons  uint16         `uplink:"kind=bits"`
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	srv, err := ds.Listen("127.0.0.1:0", ds.Config{})
	if err != nil {
		return err
	}
	defer srv.Close()
	err = ds.Handle(srv, "ServerMove", func(_ *ds.Player, f ds.Frame[ServerMove]) {
		if f.Seq%20 == 0 {
			fmt.Printf("frame %2d: at %.1f, rotation %.2f, %d missed\n", f.Seq, f.Value.Location, f.Value.Rotation, f.Missed)
		}
	})
	if err != nil {
		return err
	}
	go srv.Serve(ctx)

	// Balanced saves most for typical games: a move may wait for later ones for some ticks, unless
	// something important happened.
	conn, err := client.Dial(ctx, srv.Addr().String(), client.Config{Preset: client.Balanced})
	if err != nil {
		return err
	}
	defer conn.Close()
	move, err := client.Bind[ServerMove](ctx, conn, "ServerMove", client.BindConfig{RateHz: 60})
	if err != nil {
		return err
	}
	tick := time.NewTicker(time.Second / 60)
	defer tick.Stop()
	for i := range 61 {
		t := float64(i) / 60
		m := ServerMove{
			Location: schema.Vec3{X: 25000 + 300*math.Cos(t), Y: -61000 + 300*math.Sin(t), Z: 90},
			Rotation: schema.Rotator{Yaw: 90 + t*180/math.Pi},
			Throttle: 1,
		}
		if _, err := move.Send(&m); err != nil {
			return err
		}
		<-tick.C
	}
	s := conn.Stats()
	fmt.Printf("61 calls; wire ratio %.2f: all bits in both directions, relative to bit-packed calls in datagrams of their own\n",
		s.WireRatio("ServerMove"))
	return nil
}
