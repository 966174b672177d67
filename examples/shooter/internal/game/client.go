package game

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/predict"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/statesync"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// Client is a player's client. Its methods are for one goroutine, except those of Conn.
type Client struct {
	*client.Conn

	loop     *client.Loop[Body, Move]
	play     func(*Picture) Input // argument of Advance
	view     *client.SnapshotView[Player]
	self     *client.ObjectType[Body]
	newest   client.Snapshot[Body]
	smoother statesync.Smoother
	last     Fired
	pictures [32]Picture
	n        uint64 // number of the newest picture

	fired    map[uint32]fired
	counts   Counts
	mu       sync.Mutex
	received []Shot
}

// Picture is the scene that a client shows at one time.
type Picture struct {
	N uint64
	// ID is the id of the player's own object.
	ID uint16
	Players
	// Eye is the position of the player, and of the camera.
	Eye schema.Vec3
	// Shots are the shots that the server has decided since the last picture.
	Shots []Shot
	shown time.Duration // Time or, if Starved is set, the time of the newest snapshot
}

// Input is the player's input for one tick.
type Input struct {
	Keys uint8
	Look
	// Fire fires at the scene of Picture as soon as that is possible; a Picture of 0 means the
	// newest one.
	Fire    bool
	Picture uint64
}

// Counts compares the shots that the client showed with the decisions of the server.
type Counts struct {
	// Shots is the number of shots that the server has decided. Agreed is the number of decided
	// shots with the same target as at the client. Close is the number of other shots that passed
	// an edge of the target by less than 5 cm.
	Shots, Agreed, Close int
	// Hits is the number of shots that hit at the client, Waiting the number of shots without a
	// decision.
	Hits, Waiting int
}

// fired is a shot that the server has not decided.
type fired struct {
	ray    Ray
	target uint16
	seen   Players
}

// Dial connects a player.
func Dial(ctx context.Context, s *Server, clientID uint64, network transport.Network) (c *Client, err error) {
	c = &Client{fired: map[uint32]fired{}}
	login := func(context.Context) (token.Token, error) { return s.Login(clientID) }
	var calls client.Handlers
	// Without a preset, each call is sent at once.
	cfg := client.Config{Network: network, Renew: login, Handlers: &calls}
	cfg.Token, err = s.Login(clientID)
	if err = errors.Join(err, client.Handle(&calls, "Hit", c.onShot), client.Handle(&calls, "Shot", c.onShot)); err != nil {
		return nil, err
	}
	if c.Conn, err = client.Dial(ctx, s.Addr().String(), cfg); err != nil {
		return nil, err
	}
	moves, err := client.Bind[Move](ctx, c.Conn, "Move", client.BindConfig{RateHz: TickHz})
	if err == nil {
		c.loop, err = client.NewLoop(moves, Body{}, client.LoopConfig[Body, Move]{Input: c.input, Predict: predict.Config[Body, Move]{
			Step: Step, Tolerance: 0.05,
			Distance: func(a, b *Body) float64 { return length(sub(a.Position, b.Position)) },
			Corrected: func(before, after *Body) {
				c.smoother.Correct(statesync.Pose{Position: before.Position}, statesync.Pose{Position: after.Position})
			},
		}})
	}
	if err == nil {
		c.self, err = client.NewObjectType("self", client.SnapshotConfig[Body]{})
	}
	if err == nil {
		c.view, err = client.SubscribeSnapshots(ctx, c.Conn, "arena", client.SnapshotConfig[Player]{
			Interpolate: &interpolate.Config{Delay: Delay, Method: Method},
			Types:       []client.AnyObjectType{c.self},
		})
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Client) onShot(s client.Call[Shot]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received = append(c.received, s.Value)
}

// Advance plays the ticks that are due: for each it asks for the input of a player who sees a
// picture. It returns the time of the next tick.
func (c *Client) Advance(play func(*Picture) Input) (next time.Time, err error) {
	c.play = play
	if c.self.Latest(&c.newest) && len(c.newest.IDs) > 0 {
		err = c.loop.Correct(c.newest.Tick, c.newest.IDs[0], c.newest.Processed, &c.newest.Objects[0])
	}
	next, failed := c.loop.Advance(time.Now())
	return next, errors.Join(err, failed)
}

// input returns the move of a tick. The first one of a session has the sequence number 0.
func (c *Client) input(at time.Time, seq uint64) Move {
	if seq == 0 {
		c.last = Fired{}
		clear(c.fired)
	}
	p := &c.pictures[(c.n+1)%uint64(len(c.pictures))]
	if !c.loop.Known() || !c.view.Sample(at, &p.Players) {
		return Move{}
	}
	c.n++
	c.smoother.Step(step)
	if p.shown = p.Time; p.Starved {
		p.shown = c.newest.Time
	}
	p.ID, _ = client.SplitID(c.newest.IDs[0])
	p.N, p.Eye = c.n, c.smoother.Drawn(statesync.Pose{Position: c.loop.State().Position}).Position
	c.mu.Lock()
	p.Shots, c.received = append(p.Shots[:0], c.received...), c.received[:0]
	c.mu.Unlock()
	c.compare(p.ID, p.Shots)
	in := c.play(p)
	in.Look = in.rounded()
	if in.Fire && c.armed(p, seq) {
		if seen := &c.pictures[in.Picture%uint64(len(c.pictures))]; seen.N == in.Picture && seen.N != 0 {
			p = seen
		}
		c.fire(p, in.Look, seq)
	}
	return Move{in.Keys, in.Look, c.last}
}

// armed reports whether the player can fire with a move.
func (c *Client) armed(p *Picture, seq uint64) bool {
	i := slices.Index(p.IDs, c.newest.IDs[0])
	return i >= 0 && p.Objects[i].Armed && (c.last.Shot == 0 || seq >= uint64(c.last.Shot)+Cooldown)
}

// fire fires a shot from a picture with a move, and keeps it until the server has decided.
func (c *Client) fire(p *Picture, l Look, seq uint64) {
	c.last = Fired{uint32(seq), uint32(p.shown.Milliseconds()), rounded(p.Eye, positionSteps), schema.Rotator{Pitch: float64(l.Pitch), Yaw: float64(l.Yaw)}}
	ray := Ray{c.last.Origin, direction(c.last.Aim)}
	target, _ := ray.Trace(p.ID, &p.Players)
	c.fired[c.last.Shot] = fired{ray, target, Players{IDs: slices.Clone(p.IDs), Objects: slices.Clone(p.Objects)}}
}

// compare compares the server's decisions on a player's shots with the targets that its client
// showed.
func (c *Client) compare(shooter uint16, shots []Shot) {
	for i := range shots {
		s := &shots[i]
		f, ok := c.fired[s.Shot]
		if !ok || s.Shooter != shooter {
			continue
		}
		delete(c.fired, s.Shot)
		c.counts.Shots++
		if f.target != 0 {
			c.counts.Hits++
		}
		switch {
		case f.target == s.Target:
			c.counts.Agreed++
		case f.close(f.target, s.Target):
			c.counts.Close++
		}
	}
}

// close reports whether a shot passed an edge of one of two players by less than 5 cm, or the place
// where the front of one comes out of the other.
func (f *fired) close(a, b uint16) bool {
	const edge = 0.05
	var depths []float64
	for i := range f.seen.Objects {
		if n, _ := client.SplitID(f.seen.IDs[i]); n == a || n == b {
			gap, depth := f.ray.Ball(f.seen.Objects[i].Position)
			if math.Abs(gap) < edge {
				return true
			}
			depths = append(depths, depth)
		}
	}
	return len(depths) == 2 && math.Abs(depths[0]-depths[1]) < edge
}

// Counts returns the counts of shots.
func (c *Client) Counts() Counts {
	n := c.counts
	n.Waiting = len(c.fired)
	return n
}

// Prediction returns the counts of the prediction.
func (c *Client) Prediction() client.LoopStats { return c.loop.Stats() }
