// Package session runs the server's world, one client and a link between them, tick by tick, in whatever time the caller
// has, and measures what the client gets to see.
package session

import (
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/examples/cubes/game"
	"github.com/uplink-rpc/uplink/examples/cubes/lane"
	"github.com/uplink-rpc/uplink/examples/cubes/way"
	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// Config says what runs.
type Config struct {
	World   world.Params
	Way     way.Kind
	Options way.Options
	Link    Link
	// New makes both ends of a way; by default it is way.New, whose messages the session carries in its own time.
	New func(way.Kind, way.Start, way.Options) (way.Sender, way.Receiver, error)
}

// Link is between server and client, the same both ways.
type Link struct {
	// RTT is the round trip without jitter, Jitter the longest that a packet is held up beside it, each way.
	RTT, Jitter time.Duration
	Loss        float64
	Seed        uint64
}

// direction gives one direction of the link.
func (l Link) direction(n uint64) simnet.Config {
	// Delays are cut at four times their mean.
	return simnet.Config{Delay: l.RTT / 2, Jitter: l.Jitter / 4, Loss: l.Loss, Burst: 1, Seed: 2*l.Seed + n}
}

// Session is one. It is not safe for concurrent use.
type Session struct {
	cfg      Config
	sim      *game.Simulation
	sender   way.Sender
	receiver way.Receiver
	down, up *lane.Lane
	ack      []byte
	truth    truth
	// Drawn is what the client draws, once Shown.
	Drawn []game.Seen
	// At is the server's time of what is drawn.
	At    time.Duration
	Shown bool
	Meter Meter
}

// New begins a session: the world lies still.
func New(cfg Config) (*Session, error) {
	sim, err := game.NewSimulation(cfg.World)
	if err != nil {
		return nil, err
	}
	s := &Session{cfg: cfg, sim: sim, Drawn: make([]game.Seen, len(sim.Bodies)), truth: newTruth(len(sim.Bodies))}
	s.Meter.begin(len(sim.Bodies))
	if s.down, err = lane.New(cfg.Link.direction(0)); err != nil {
		return nil, err
	}
	if s.up, err = lane.New(cfg.Link.direction(1)); err != nil {
		return nil, err
	}
	if err := s.Use(cfg.Way, cfg.Options); err != nil {
		return nil, err
	}
	s.truth.push(sim.Tick, sim.Bodies)
	return s, nil
}

// Use changes the way down, or its options, while the world goes on. What is drawn stays until the new way has something.
func (s *Session) Use(k way.Kind, o way.Options) error {
	ends := s.cfg.New
	if ends == nil {
		ends = way.New
	}
	if err := s.Close(); err != nil {
		return err
	}
	sender, receiver, err := ends(k, way.Start{World: s.cfg.World, Bodies: s.sim.Bodies, Tick: s.sim.Tick}, o)
	if err != nil {
		return err
	}
	s.cfg.Way, s.cfg.Options = k, o
	s.sender, s.receiver = sender, receiver
	s.sim.Round = k == way.State && !o.NoRound
	// What is on its way is of the way before.
	down, up, err := s.lanes()
	if err != nil {
		return err
	}
	s.Meter.carry(s.down.Bytes, s.down.Datagrams)
	s.down, s.up = down, up
	return nil
}

// Close ends the way down, which Use may begin again.
func (s *Session) Close() error {
	c, ok := s.sender.(way.Carrier)
	if !ok {
		return nil
	}
	s.Meter.carry(c.Carried())
	return c.Close()
}

func (s *Session) lanes() (down, up *lane.Lane, err error) {
	if down, err = lane.New(s.cfg.Link.direction(0)); err != nil {
		return nil, nil, err
	}
	up, err = lane.New(s.cfg.Link.direction(1))
	return down, up, err
}

// SetBudget changes the budget, in bits a second; 0 is no limit.
func (s *Session) SetBudget(bits int) {
	s.cfg.Options.Budget = bits
	s.sender.SetBudget(bits)
}

// SetLink changes the link, but for its seed.
func (s *Session) SetLink(l Link) error {
	s.cfg.Link = l
	if err := s.down.Set(l.direction(0)); err != nil {
		return err
	}
	return s.up.Set(l.direction(1))
}

// Config is what runs now.
func (s *Session) Config() Config { return s.cfg }

// Bodies is the server's world, the session's own.
func (s *Session) Bodies() []world.Body { return s.sim.Bodies }

// Now is the server's time, which is also the client's.
func (s *Session) Now() time.Duration { return game.Time(s.sim.Tick) }

// Tick has the server simulate one tick under an input, carries what is on its way, and has the client draw. An error is
// of the game, not of the link.
func (s *Session) Tick(in world.Input) error {
	if err := s.sim.Step(in); err != nil {
		return err
	}
	now := s.Now()
	s.truth.push(s.sim.Tick, s.sim.Bodies)
	var err error
	s.up.Deliver(now, func(_ time.Duration, b []byte) {
		if bad := s.sender.Ack(b); bad != nil && err == nil {
			err = fmt.Errorf("ack: %w", bad)
		}
	})
	if err != nil {
		return err
	}
	frame := way.Frame{Tick: s.sim.Tick, Bodies: s.sim.Bodies, Input: in}
	if err := s.sender.Send(&frame, func(b []byte) { s.down.Send(now, b) }); err != nil {
		return err
	}
	s.down.Deliver(now, func(at time.Duration, b []byte) {
		if bad := s.receiver.Receive(at, b); bad != nil {
			s.Meter.refused(bad)
		}
	})
	if b := s.receiver.Ack(s.ack[:0]); len(b) > 0 {
		s.up.Send(now, b)
		s.ack = b
	}
	if at, ok := s.receiver.Draw(now, s.Drawn); ok {
		s.At, s.Shown = at, true
	}
	s.Meter.tick(s, now)
	return nil
}
