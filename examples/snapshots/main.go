// Snapshots: a dedicated server sends a world of 100 balls to a client, 20 times per second, over a
// network that loses 5 % of all packets. The client interpolates them and draws 60 frames per
// second. At the end the program prints the traffic, and the error of the balls as drawn.
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

// Ball is an object of the world. The uplink tags define the resolution of its fields, the
// interpolate tags which fields the client interpolates.
type Ball struct {
	Position schema.Vec3 `uplink:"resolution=0.002,min=-250,max=250,velocity=Velocity" interpolate:"position"`
	Velocity schema.Vec3 `uplink:"resolution=0.03" interpolate:"velocity"`
	Rotation schema.Quat `uplink:"bits=10" interpolate:"orientation"`
	Lit      bool
}

// at returns ball i at time t in seconds. Each ball bounces with its own period.
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
	srv, err := ds.Listen("127.0.0.1:7777", ds.Config{Network: network, Joined: func(p *ds.Player) {
		if _, err := p.Offer("balls"); err != nil {
			log.Print(err)
		}
	}})
	if err != nil {
		return err
	}
	defer srv.Close()
	world, err := ds.NewWorld(srv, "balls", ds.WorldConfig[Ball]{TickHz: tickHz, SendHz: sendHz})
	if err != nil {
		return err
	}
	go srv.Serve(ctx)
	go func() { log.Fatal(serve(world)) }()

	// The client subscribes to the world. It has no preset: these concern calls, and it makes none.
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
	draw(view)

	s, c := world.Stats(), view.Stats()
	n := float64(s.Messages)
	fmt.Printf("%d snapshots of %d balls sent, %d received: %.0f bytes each, %.1f kbit/s with all headers\n",
		s.Messages, balls, c.Messages, float64(s.Bytes)/n, 8*float64(s.WireBytes())/1000*sendHz/n)
	fmt.Printf("%d bytes each in memory\n", balls*8*(3+3+4)+balls)
	return nil
}

// serve is the game loop of the server. The world sends every third tick. The tick follows real
// time: if the loop was late, time.Tick has dropped ticks, and their numbers are skipped.
func serve(world *ds.World[Ball]) error {
	start, tick := time.Now(), uint64(0)
	for now := range time.Tick(time.Second / tickHz) {
		due := uint64(now.Sub(start).Seconds()*tickHz + 0.5)
		if due <= tick {
			continue
		}
		tick = due
		if err := world.Begin(tick); err != nil {
			return err
		}
		for i := range balls {
			b := at(i, float64(tick)/tickHz)
			if err := world.Put(uint16(i), 0, &b); err != nil {
				return err
			}
		}
		if _, err := world.Send(); err != nil {
			return err
		}
	}
	return nil
}

// draw is the game loop of the client. It compares the balls as drawn with the server's.
func draw(view *client.SnapshotView[Ball]) {
	var shown interpolate.Sample[Ball]
	var sum, largest, n float64
	start := time.Now()
	for now := range time.Tick(time.Second / 60) {
		if now.Sub(start) > seconds*time.Second {
			break
		}
		if !view.Sample(now, &shown) || now.Sub(start) < time.Second { // the first second is a warm-up
			continue
		}
		for i, id := range shown.IDs {
			object, _ := client.SplitID(id)
			// The balls bounce in place.
			d := math.Abs(shown.Objects[i].Position.Z - at(int(object), shown.Time.Seconds()).Position.Z)
			sum += d
			largest = max(largest, d)
			n++
		}
	}
	st := view.Interpolation()
	fmt.Printf("interpolation delay %v, %d hitches; mean error %.1f mm, largest %.0f mm (at a bounce)\n",
		st.Delay.Round(time.Millisecond), st.Hitches, 1000*sum/max(n, 1), 1000*largest)
}
