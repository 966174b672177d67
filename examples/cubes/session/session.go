// Package session replicates the server's world to one client over a link, tick by tick, and
// measures the state that the client sees. Each replication [Mode] is a [Sender] and a [Receiver].
// Those that New creates by default exchange messages over a simulated link in the caller's time;
// those of [Endpoints] use a real server and client. [Compare] runs all modes on the same inputs in
// virtual time.
package session

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// Config is the configuration of a Session.
type Config struct {
	World   world.Params
	Mode    Mode
	Options Options
	Link    Link
	// New creates the sender and the receiver of a mode. The default is a pair whose messages the
	// session carries over a simulated link.
	New func(Mode, Initial, Options) (Sender, Receiver, error)
}

// Link contains the properties of the link between server and client, which are the same in both
// directions.
type Link struct {
	// RTT is the round-trip time without jitter, Jitter the maximum additional delay of a packet in
	// each direction.
	RTT, Jitter time.Duration
	// Loss is the fraction of packets that are lost in each direction.
	Loss float64
	Seed uint64
}

// direction returns the configuration of the downlink, for 0, or of the uplink, for 1.
func (l Link) direction(n uint64) simnet.Config {
	// The simulated link limits delays to four times their mean.
	return simnet.Config{Delay: l.RTT / 2, Jitter: l.Jitter / 4, Loss: l.Loss, Burst: 1, Seed: 2*l.Seed + n}
}

// Session is a server's world, one client and the link between them. Not safe for concurrent use.
type Session struct {
	cfg      Config
	sim      *world.Simulation
	sender   Sender
	receiver Receiver
	down, up *simLink
	ack      []byte
	history  history
	// Drawn contains the cubes as the client draws them. It is valid if Drawing.
	Drawn []world.Visual
	// DrawnAt is the server's time of Drawn.
	DrawnAt time.Duration
	Drawing bool
	Meter   Meter
}

// New returns a session of a new world.
func New(cfg Config) (*Session, error) {
	if cfg.New == nil {
		cfg.New = newPair
	}
	sim, err := world.NewSimulation(cfg.World)
	if err != nil {
		return nil, err
	}
	s := &Session{cfg: cfg, sim: sim, Drawn: make([]world.Visual, len(sim.Bodies)), history: newHistory(len(sim.Bodies))}
	s.Meter.begin(len(sim.Bodies))
	if s.down, s.up, err = s.newLinks(); err != nil {
		return nil, err
	}
	if err := s.Use(cfg.Mode, cfg.Options); err != nil {
		return nil, err
	}
	s.history.push(sim.Tick, sim.Bodies)
	return s, nil
}

// Use replaces the replication mode and its options while the world continues. Drawn is unchanged
// until the new receiver has something to draw.
func (s *Session) Use(m Mode, o Options) error {
	if err := s.Close(); err != nil {
		return err
	}
	sender, receiver, err := s.cfg.New(m, Initial{World: s.cfg.World, Bodies: s.sim.Bodies, Tick: s.sim.Tick}, o)
	if err != nil {
		return err
	}
	s.cfg.Mode, s.cfg.Options = m, o
	s.sender, s.receiver = sender, receiver
	s.sim.Round = m == ModeState && !o.NoRound
	// Messages in flight belong to the previous mode.
	down, up, err := s.newLinks()
	if err != nil {
		return err
	}
	s.Meter.addPast(s.down.bytes, s.down.datagrams)
	s.down, s.up = down, up
	return nil
}

// Close stops replication. Use may start it again.
func (s *Session) Close() error {
	c, ok := s.sender.(Carrier)
	if !ok {
		return nil
	}
	s.Meter.addPast(c.Traffic())
	return c.Close()
}

func (s *Session) newLinks() (down, up *simLink, err error) {
	if down, err = newSimLink(s.cfg.Link.direction(0)); err != nil {
		return nil, nil, err
	}
	up, err = newSimLink(s.cfg.Link.direction(1))
	return down, up, err
}

// SetBudget changes the budget, in bits per second. 0 means no limit.
func (s *Session) SetBudget(bits int) {
	s.cfg.Options.Budget = bits
	s.sender.SetBudget(bits)
}

// SetLink changes the properties of the link, except its seed.
func (s *Session) SetLink(l Link) error {
	s.cfg.Link = l
	return errors.Join(s.down.link.Set(l.direction(0)), s.up.link.Set(l.direction(1)))
}

// Config returns the current configuration.
func (s *Session) Config() Config { return s.cfg }

// Bodies returns the cubes of the server's world. The caller must not modify them.
func (s *Session) Bodies() []world.Body { return s.sim.Bodies }

// Now returns the time since the start, which server and client share.
func (s *Session) Now() time.Duration { return world.TickTime(s.sim.Tick) }

// Tick simulates one tick of the server with an input, delivers the messages that are due, and lets
// the client draw. Errors of the simulation and of the server are returned; messages that the
// client rejects are counted by the Meter.
func (s *Session) Tick(in world.Input) error {
	if err := s.sim.Step(in); err != nil {
		return err
	}
	now := s.Now()
	s.history.push(s.sim.Tick, s.sim.Bodies)
	var err error
	s.up.deliver(now, func(_ time.Duration, b []byte) {
		if bad := s.sender.Ack(b); bad != nil {
			err = cmp.Or(err, fmt.Errorf("ack: %w", bad))
		}
	})
	if err != nil {
		return err
	}
	frame := Frame{Tick: s.sim.Tick, Bodies: s.sim.Bodies, Input: in}
	bad := s.sender.Send(&frame, func(b []byte) { err = errors.Join(err, s.down.send(now, b)) })
	if err = errors.Join(err, bad); err != nil {
		return err
	}
	s.down.deliver(now, func(at time.Duration, b []byte) {
		if err := s.receiver.Receive(at, b); err != nil {
			s.Meter.reject(err)
		}
	})
	if b := s.receiver.Ack(s.ack[:0]); len(b) > 0 {
		if err := s.up.send(now, b); err != nil {
			return err
		}
		s.ack = b
	}
	if at, ok := s.receiver.Draw(now, s.Drawn); ok {
		s.DrawnAt, s.Drawing = at, true
	}
	s.Meter.tick(s, now)
	return nil
}
