// Statesync: a dedicated server and a client both simulate 300 balls; a player's input kicks those near it. The server sends
// the client the input, and within 64 kbit/s the state of the balls that matter most, over a network that loses 5 % of all
// packets. The client simulates on from that, and hides from the eye that it was put right. At the end it prints what
// that took, and how far from the truth the balls were.
package main

import (
	"context"
	"fmt"
	"log"
	"math"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/statesync"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

const (
	balls     = 300
	tickHz    = 60
	seconds   = 8
	bandwidth = 64_000 // bits a second
	delay     = 3      // ticks that the client stays behind the newest that came, so that what is late is there
)

// Ball is an object of the world. The tags say how exactly its fields are sent, which one moves which other, and which says
// that it rests: both ends know by them.
type Ball struct {
	Position schema.Vec3 `uplink:"resolution=0.001,min=-64,max=64,velocity=Velocity"`
	Velocity schema.Vec3 `uplink:"resolution=0.01,min=-40,max=40"`
	Resting  bool        `statesync:"rest"`
}

// world is a simulation of balls: the same at both ends.
type world struct {
	balls [balls]Ball
	round *statesync.Quantizer[Ball]
}

func newWorld() (*world, error) {
	round, err := statesync.NewQuantizer[Ball]("Ball", tickHz)
	w := &world{round: round}
	for i := range w.balls {
		w.balls[i] = Ball{Position: schema.Vec3{X: 3 * float64(i%20), Y: 3 * float64(i/20)}, Resting: true}
	}
	return w, err
}

// step is one tick. kick, if it is not 0, kicks the balls around ball kick-1. Rounding first has both ends go on from
// the same values.
func (w *world) step(kick byte) error {
	for i := range w.balls {
		b := &w.balls[i]
		if kick != 0 {
			center := 7 * int(kick-1) % balls
			if dx, dy := i%20-center%20, i/20-center/20; dx*dx+dy*dy <= 4 {
				b.Velocity, b.Resting = schema.Vec3{X: 3 * float64(dx), Y: 3 * float64(dy), Z: 12}, false
			}
		}
		if b.Resting {
			continue
		}
		if err := w.round.Round(b); err != nil {
			return err
		}
		p, v := &b.Position, &b.Velocity
		v.Z -= 9.81 / tickHz
		p.X, p.Y, p.Z = wall(p.X+v.X/tickHz), wall(p.Y+v.Y/tickHz), p.Z+v.Z/tickHz
		if p.Z < 0 {
			p.Z, v.X, v.Y, v.Z = 0, 0.8*v.X, 0.8*v.Y, -0.6*v.Z
			if math.Abs(v.Z) < 0.5 {
				*v, b.Resting = schema.Vec3{}, true
			}
		}
		if err := w.round.Round(b); err != nil {
			return err
		}
	}
	return nil
}

// wall keeps a coordinate within the world.
func wall(x float64) float64 { return min(max(x, -60), 60) }

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	link := simnet.Config{Delay: 50 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.05, Seed: 1}
	network, err := simnet.NewNetwork(link, link)
	if err != nil {
		return err
	}

	// The server offers its world, as state, to each player who joins.
	g := &game{truth: map[uint64][balls]Ball{}}
	srv, err := ds.Listen("127.0.0.1:7777", ds.Config{Network: network, Joined: g.join})
	if err != nil {
		return err
	}
	defer srv.Close()
	if g.world, err = ds.NewWorld(srv, "balls", ds.WorldConfig[Ball]{TickHz: tickHz}); err != nil {
		return err
	}
	go srv.Serve(ctx)
	go g.run()

	// The client takes part.
	conn, err := client.Dial(ctx, "127.0.0.1:7777", client.Config{Network: network})
	if err != nil {
		return err
	}
	defer conn.Close()
	view, err := client.SubscribeState(ctx, conn, "balls", client.StateConfig[Ball]{})
	if err != nil {
		return err
	}
	p, err := newPlayer(g)
	if err != nil {
		return err
	}
	begin := time.Now()
	before := g.world.Stats()
	for now := range time.Tick(time.Second / tickHz) {
		if now.Sub(begin) > seconds*time.Second {
			break
		}
		view.Poll(p.take)
		if err := p.frame(); err != nil {
			return err
		}
	}
	s, c := g.world.Stats(), view.Stats()
	bits, took := 8*float64(s.WireBytes()-before.WireBytes()), time.Since(begin).Seconds()
	fmt.Printf("%d messages sent, %d came: %.1f of %d kbit/s with all headers\n", s.Messages, c.Messages, bits/took/1000, bandwidth/1000)
	fmt.Printf("%.0f objects updated a second, of %d\n", float64(c.Updates)/took, balls)
	fmt.Printf("simulated %.1f cm from the server's world in the mean, drawn %.1f cm, at worst %.0f cm\n", 100*p.off/p.n, 100*p.drawn/p.n, 100*p.worst)
	return nil
}

// game is the server's.
type game struct {
	world *ds.World[Ball]

	mu      sync.Mutex
	streams []*ds.StateStream[Ball]
	truth   map[uint64][balls]Ball // of each tick, to compare with
}

func (g *game) join(p *ds.Player) {
	s, err := g.world.OfferState(p, ds.StateConfig{Bandwidth: bandwidth})
	if err != nil {
		log.Print(err)
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.streams = append(g.streams, s)
}

// run ticks for ever.
func (g *game) run() {
	w, err := newWorld()
	if err != nil {
		log.Fatal(err)
	}
	tick := uint64(0)
	for range time.Tick(time.Second / tickHz) {
		tick++
		kick := byte(0)
		if tick%20 == 0 { // what the player would have sent by an RPC
			kick = byte(1 + tick/20%200)
		}
		if err := w.step(kick); err != nil {
			log.Fatal(err)
		}
		if err := g.send(tick, kick, w); err != nil {
			log.Fatal(err)
		}
	}
}

func (g *game) send(tick uint64, kick byte, w *world) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.truth[tick] = w.balls
	for _, s := range g.streams {
		if err := s.AddInputs(tick, statesync.Input{Data: []byte{kick}}); err != nil {
			return err
		}
		for i := range w.balls {
			priority := 1.0 // those that rest, too, lest one is missed for ever
			if !w.balls[i].Resting {
				priority = 100
			}
			if err := s.Prioritize(uint16(i), priority); err != nil {
				return err
			}
		}
	}
	if err := g.world.Begin(tick); err != nil {
		return err
	}
	for i := range w.balls {
		if err := g.world.Put(uint16(i), 0, &w.balls[i]); err != nil {
			return err
		}
	}
	g.world.Commit()
	_, err := g.world.Send()
	return err
}

// player is the client's game.
type player struct {
	game     *game // the server's, to compare with
	world    *world
	tick     uint64 // that was simulated last
	newest   uint64 // that came
	kicks    map[uint64]byte
	states   map[uint64][]client.StateObject[Ball]
	smoother [balls]statesync.Smoother

	off, drawn, worst, n float64
}

func newPlayer(g *game) (*player, error) {
	w, err := newWorld()
	return &player{game: g, world: w, kicks: map[uint64]byte{}, states: map[uint64][]client.StateObject[Ball]{}}, err
}

// take keeps what came until its tick is simulated. What is too late for that is used at once.
func (p *player) take(u *client.StateUpdate[Ball]) {
	for _, in := range u.Inputs {
		if len(in.Inputs) == 1 {
			p.kicks[uint64(in.Tick)] = in.Inputs[0].Data[0]
		}
	}
	p.newest = max(p.newest, u.Tick)
	at := max(u.Tick, p.tick+1)
	p.states[at] = append(p.states[at], u.Objects...)
}

// frame simulates what is due and draws.
func (p *player) frame() error {
	if p.newest <= delay {
		return nil
	}
	steps := 1
	switch due := p.newest - delay; {
	case p.tick == 0 || p.tick+tickHz < due: // at first, or after a pause
		p.tick = due - 1
	case p.tick >= due:
		steps = 0
	case p.tick+delay < due: // its clock is slower
		steps = 2
	}
	for range steps {
		if err := p.step(); err != nil {
			return err
		}
	}
	p.draw()
	return nil
}

func (p *player) step() error {
	p.tick++
	if err := p.world.step(p.kicks[p.tick]); err != nil {
		return err
	}
	for tick, objects := range p.states {
		if tick > p.tick {
			continue
		}
		for i := range objects {
			b := &p.world.balls[objects[i].ID]
			from, to := statesync.Pose{Position: b.Position}, statesync.Pose{Position: objects[i].State.Position}
			p.smoother[objects[i].ID].Correct(from, to)
			*b = objects[i].State
		}
		delete(p.states, tick)
	}
	delete(p.kicks, p.tick)
	return nil
}

// draw compares what it would draw with the truth.
func (p *player) draw() {
	p.game.mu.Lock()
	truth := p.game.truth[p.tick]
	p.game.mu.Unlock()
	for i := range p.world.balls {
		s := &p.smoother[i]
		s.Step(1.0 / tickHz)
		if truth[i].Resting && p.world.balls[i].Resting {
			continue
		}
		at := p.world.balls[i].Position
		shown := s.Drawn(statesync.Pose{Position: at}).Position
		p.off += distance(at, truth[i].Position)
		d := distance(shown, truth[i].Position)
		p.drawn += d
		p.worst = max(p.worst, d)
		p.n++
	}
}

func distance(a, b schema.Vec3) float64 {
	return math.Hypot(math.Hypot(a.X-b.X, a.Y-b.Y), a.Z-b.Z)
}
