// Snapshots: a dedicated server sends a world of 100 balls to a client, 20 times a second, over a network that loses 5 %
// of all packets. The client shows them smoothly at 60 frames a second. At the end it prints what that took, and how far
// from the truth the balls were that it showed.
package main

import (
	"context"
	"fmt"
	"log"
	"math"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

const (
	balls   = 100
	tickHz  = 60
	sendHz  = 20
	seconds = 4
)

// Ball is an object of the world. The tags of uplink say how exactly its fields are sent, those of interpolate which of
// them are shown smoothly.
type Ball struct {
	Position schema.Vec3 `uplink:"resolution=0.002,min=-250,max=250,velocity=Velocity" interpolate:"position"`
	Velocity schema.Vec3 `uplink:"resolution=0.03" interpolate:"velocity"`
	Rotation schema.Quat `uplink:"bits=10" interpolate:"orientation"`
	Lit      bool
}

// at is where ball i is at time t in seconds: balls bounce, each in its own time.
func at(i int, t float64) Ball {
	period := 1 + 0.02*float64(i)
	phase := math.Mod(t+0.3*float64(i), period)
	sin, cos := math.Sincos(t / 2 * float64(1+i%5))
	return Ball{
		Position: schema.Vec3{X: 2 * float64(i%10), Y: 2 * float64(i/10), Z: 5 * phase * (period - phase)},
		Velocity: schema.Vec3{Z: 5 * (period - 2*phase)},
		Rotation: schema.Quat{Z: sin, W: cos},
		Lit:      phase < 0.1,
	}
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	link := simnet.Config{Delay: 40 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.05, Seed: 1}
	network, err := simnet.NewNetwork(link, link)
	if err != nil {
		return err
	}

	// The server offers its world to each player who joins.
	var world *ds.World[Ball]
	srv, err := ds.Listen("127.0.0.1:7777", ds.Config{Network: network, Joined: func(p *ds.Player) {
		if _, err := world.Offer(p); err != nil {
			log.Print(err)
		}
	}})
	if err != nil {
		return err
	}
	defer srv.Close()
	world, err = ds.NewWorld(srv, "balls", ds.WorldConfig[Ball]{TickHz: tickHz, SendHz: sendHz})
	if err != nil {
		return err
	}
	go srv.Serve(ctx)
	go serve(world)

	// The client takes part.
	conn, err := client.Dial(ctx, "127.0.0.1:7777", client.Config{Network: network})
	if err != nil {
		return err
	}
	defer conn.Close()
	view, err := client.SubscribeSnapshots(ctx, conn, "balls", client.SnapshotConfig[Ball]{
		Interpolate: &interpolate.Config{Method: interpolate.Hermite},
	})
	if err != nil {
		return err
	}
	watch(view)

	s, c := world.Stats(), view.Stats()
	n := float64(s.Messages)
	fmt.Printf("%d snapshots of %d balls sent, %d came: %.0f bytes each, %.1f kbit/s with all headers\n",
		s.Messages, balls, c.Messages, float64(s.Bytes)/n, 8*float64(s.WireBytes())/1000*sendHz/n)
	fmt.Printf("as Go has them they would be %d bytes each\n", balls*8*(3+3+4)+balls)
	return nil
}

// serve is the game: it ticks for ever, and sends each third tick.
func serve(world *ds.World[Ball]) {
	tick := uint64(0)
	for range time.Tick(time.Second / tickHz) {
		tick++
		if tick%(tickHz/sendHz) != 0 {
			continue
		}
		if err := send(world, tick); err != nil {
			log.Fatal(err)
		}
	}
}

func send(world *ds.World[Ball], tick uint64) error {
	if err := world.Begin(tick); err != nil {
		return err
	}
	for i := range balls {
		b := at(i, float64(tick)/tickHz)
		if err := world.Put(uint16(i), 0, &b); err != nil {
			return err
		}
	}
	world.Commit()
	_, err := world.Send()
	return err
}

// watch shows the world: here, it compares what it would draw with the truth.
func watch(view *client.SnapshotView[Ball]) {
	var (
		shown  interpolate.Sample[Ball]
		errors float64
		worst  float64
		n      int
	)
	end := time.Now().Add(seconds * time.Second)
	begin := end.Add(-(seconds - 1) * time.Second) // the first second is to get going
	for now := range time.Tick(time.Second / 60) {
		if now.After(end) {
			break
		}
		if !view.Sample(now, &shown) || now.Before(begin) {
			continue
		}
		for i, id := range shown.IDs {
			object, _ := client.SplitID(id)
			p, q := shown.Objects[i].Position, at(int(object), shown.Time.Seconds()).Position
			d := math.Abs(p.Z - q.Z) // they bounce in place
			errors += d
			worst = max(worst, d)
			n++
		}
	}
	st := view.Interpolation()
	fmt.Printf("shown %v behind the newest snapshot, %d hitches: off by %.1f mm in the mean, %.0f mm at worst (where a bounce is missed)\n",
		st.Delay.Round(time.Millisecond), st.Hitches, 1000*errors/float64(max(n, 1)), 1000*worst)
}
