// Statesync: a dedicated server and a client both simulate 300 balls, and a player's input kicks
// the balls near a point. The server sends the client the input and, within 64 kbit/s, the state of
// the most important balls, over a network that loses 5 % of all packets. The client simulates on
// from that state and smooths out its corrections. At the end the program prints the traffic and
// the corrections.
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
	bandwidth = 64_000 // bits/s
	delay     = 3      // ticks that the client stays behind the newest update, so that late ones are in time
)

// Ball is an object of the world. The tags define the resolution of its fields, the velocity of its
// position, and the field that reports whether the ball is at rest.
type Ball struct {
	Position schema.Vec3 `uplink:"resolution=0.001,min=-64,max=64,velocity=Velocity"`
	Velocity schema.Vec3 `uplink:"resolution=0.01,min=-40,max=40"`
	Resting  bool        `statesync:"rest"`
}

// simulation is the same at both ends.
type simulation struct {
	balls [balls]Ball
	round *statesync.Quantizer[Ball]
}

func newSimulation() (*simulation, error) {
	round, err := statesync.NewQuantizer[Ball]("Ball", tickHz)
	s := &simulation{round: round}
	for i := range s.balls {
		s.balls[i] = Ball{Position: schema.Vec3{X: 3 * float64(i%20), Y: 3 * float64(i/20)}, Resting: true}
	}
	return s, err
}

// step simulates one tick. If kick is not 0, it kicks the balls near ball 7*(kick-1). Rounding
// makes both ends continue from the same values.
func (s *simulation) step(kick byte) error {
	for i := range s.balls {
		b := &s.balls[i]
		if kick != 0 {
			center := 7 * int(kick-1) % balls
			if dx, dy := i%20-center%20, i/20-center/20; dx*dx+dy*dy <= 4 {
				b.Velocity, b.Resting = schema.Vec3{X: 3 * float64(dx), Y: 3 * float64(dy), Z: 12}, false
			}
		}
		if b.Resting {
			continue
		}
		if err := s.round.Round(b); err != nil {
			return err
		}
		p, v := &b.Position, &b.Velocity
		v.Z -= 9.81 / tickHz
		p.X, p.Y, p.Z = min(max(p.X+v.X/tickHz, -60), 60), min(max(p.Y+v.Y/tickHz, -60), 60), p.Z+v.Z/tickHz
		if p.Z < 0 {
			p.Z, v.X, v.Y, v.Z = 0, 0.8*v.X, 0.8*v.Y, -0.6*v.Z
			if math.Abs(v.Z) < 0.5 {
				*v, b.Resting = schema.Vec3{}, true
			}
		}
		if err := s.round.Round(b); err != nil {
			return err
		}
	}
	return nil
}

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

	// The server offers its world to each player who joins.
	g := &game{}
	srv, err := ds.Listen("127.0.0.1:7777", ds.Config{Network: network, Joined: g.join})
	if err != nil {
		return err
	}
	defer srv.Close()
	if g.world, err = ds.NewWorld(srv, "balls", ds.WorldConfig[Ball]{TickHz: tickHz}); err != nil {
		return err
	}
	go srv.Serve(ctx)
	go func() { log.Fatal(g.run()) }()

	// The client subscribes to the world. It has no preset: these concern calls, and it makes none.
	conn, err := client.Dial(ctx, "127.0.0.1:7777", client.Config{Network: network})
	if err != nil {
		return err
	}
	defer conn.Close()
	view, err := client.SubscribeState(ctx, conn, "balls", client.StateConfig[Ball]{})
	if err != nil {
		return err
	}
	sim, err := newSimulation()
	if err != nil {
		return err
	}
	p := &player{simulation: sim, kicks: map[uint64]byte{}, states: map[uint64][]client.StateObject[Ball]{}}
	start, before := time.Now(), g.world.Stats()
	for now := range time.Tick(time.Second / tickHz) {
		if now.Sub(start) > seconds*time.Second {
			break
		}
		view.Poll(p.update)
		if err := p.frame(); err != nil {
			return err
		}
	}
	s, c := g.world.Stats(), view.Stats()
	bits, elapsed := 8*float64(s.WireBytes()-before.WireBytes()), time.Since(start).Seconds()
	fmt.Printf("%d messages sent, %d received: %.1f of %d kbit/s with all headers\n", s.Messages, c.Messages, bits/elapsed/1000, bandwidth/1000)
	fmt.Printf("%.0f updates per second of %d objects\n", float64(c.Updates)/elapsed, balls)
	fmt.Printf("mean correction %.1f cm, largest %.0f cm\n", 100*p.sum/float64(c.Updates), 100*p.largest)
	return nil
}

// game is the server's part.
type game struct {
	world *ds.World[Ball]

	mu      sync.Mutex
	streams []*ds.StateStream
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

func (g *game) run() error {
	sim, err := newSimulation()
	if err != nil {
		return err
	}
	const maxLate = tickHz / 4 // ticks behind real time; if there are more, the game runs slower
	start, tick := time.Now(), uint64(0)
	for range time.Tick(time.Second / tickHz) {
		// If the loop was late, time.Tick has dropped ticks: they run now.
		due := uint64(time.Since(start).Seconds() * tickHz)
		if due > tick+maxLate {
			start = start.Add(time.Duration(due-tick-maxLate) * time.Second / tickHz)
			due = tick + maxLate
		}
		for tick < due {
			tick++
			if err := g.step(sim, tick); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *game) step(sim *simulation, tick uint64) error {
	kick := byte(0)
	if tick%20 == 0 { // in a game, the player sends this by an RPC
		kick = byte(1 + tick/20%200)
	}
	if err := sim.step(kick); err != nil {
		return err
	}
	return g.send(tick, kick, &sim.balls)
}

func (g *game) send(tick uint64, kick byte, state *[balls]Ball) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.streams {
		if err := s.AddInputs(tick, statesync.Input{Data: []byte{kick}}); err != nil {
			return err
		}
		for i := range state {
			priority := 100.0
			if state[i].Resting {
				priority = 1 // not 0: the client may have missed that it came to rest
			}
			if err := s.Prioritize(uint16(i), priority); err != nil {
				return err
			}
		}
	}
	if err := g.world.Begin(tick); err != nil {
		return err
	}
	for i := range state {
		if err := g.world.Put(uint16(i), 0, &state[i]); err != nil {
			return err
		}
	}
	_, err := g.world.Send()
	return err
}

// player is the client's part.
type player struct {
	*simulation
	tick     uint64 // simulated last
	newest   uint64 // newest tick of all updates
	kicks    map[uint64]byte
	states   map[uint64][]client.StateObject[Ball] // by the tick at which they are applied
	smoother [balls]statesync.Smoother

	sum, largest float64 // sum and maximum of corrections, in m
}

// update keeps an update until its tick is simulated.
func (p *player) update(u *client.StateUpdate[Ball]) {
	for _, in := range u.Inputs {
		if len(in.Inputs) == 1 {
			p.kicks[uint64(in.Tick)] = in.Inputs[0].Data[0]
		}
	}
	p.newest = max(p.newest, u.Tick)
	at := max(u.Tick, p.tick+1) // at once if it is late
	p.states[at] = append(p.states[at], u.Objects...)
}

// frame simulates one tick, unless the client is too close to the newest update or too far behind
// it.
func (p *player) frame() error {
	if p.newest <= delay {
		return nil
	}
	due := max(p.newest-delay, p.tick)
	if p.tick == 0 || p.tick+tickHz < due { // at the start, or after a pause
		p.tick = due - 1
	}
	steps := min(due-p.tick, 1)
	if p.tick+delay < due { // the client's clock is slower
		steps = 2
	}
	for range steps {
		if err := p.next(); err != nil {
			return err
		}
	}
	for i := range p.balls {
		_ = p.draw(i) // a game would draw the ball here
	}
	return nil
}

// next simulates one tick and corrects it by the received states.
func (p *player) next() error {
	p.tick++
	if err := p.step(p.kicks[p.tick]); err != nil {
		return err
	}
	for tick, objects := range p.states {
		if tick > p.tick {
			continue
		}
		for i := range objects {
			b := &p.balls[objects[i].ID]
			from, to := statesync.Pose{Position: b.Position}, statesync.Pose{Position: objects[i].State.Position}
			p.smoother[objects[i].ID].Correct(from, to)
			d := distance(from.Position, to.Position)
			p.sum, p.largest = p.sum+d, max(p.largest, d)
			*b = objects[i].State
		}
		delete(p.states, tick)
	}
	delete(p.kicks, p.tick)
	return nil
}

// draw returns where the client draws a ball: its simulated position, with corrections faded out.
func (p *player) draw(i int) schema.Vec3 {
	p.smoother[i].Step(1.0 / tickHz)
	return p.smoother[i].Drawn(statesync.Pose{Position: p.balls[i].Position}).Position
}

func distance(a, b schema.Vec3) float64 {
	return math.Hypot(math.Hypot(a.X-b.X, a.Y-b.Y), a.Z-b.Z)
}
