// Package way has the ways down: how what the server simulates becomes what a client draws. Each is a Sender and a
// Receiver. None has a clock, a socket or a goroutine: ticks and times are arguments.
package way

import (
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/examples/cubes/game"
	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/schema"
)

// Kind is which way.
type Kind int

// The ways.
const (
	// Full sends the whole world, uncompressed, a few times a second, and the client interpolates.
	Full Kind = iota
	// Snapshots sends compressed snapshots, and the client interpolates.
	Snapshots
	// State sends inputs and the state of what matters most, and the client simulates.
	State
)

var names = []string{"full", "snapshots", "state"}

// String gives the name.
func (k Kind) String() string { return names[k] }

// Parse gives the way of a name.
func Parse(name string) (Kind, error) {
	for k, n := range names {
		if n == name {
			return Kind(k), nil
		}
	}
	return 0, fmt.Errorf("way down is %q: want one of %q", name, names)
}

// Options are how a way works.
type Options struct {
	// Rate is how many messages a second leave, at most: a divisor of game.Rate.
	Rate int
	// Budget is how many bits a second they may take, headers down to IP included; 0 is no limit.
	Budget int
	// Jitter is by how much messages are held up, Loss the share that is lost, as far as is known at first.
	Jitter time.Duration
	Loss   float64
	// Of State alone: NoDelta has each state sent whole, NoRound has neither end simulate on from rounded states, NoSmooth
	// has corrections drawn as they come.
	NoDelta, NoRound, NoSmooth bool
}

// Interval is the time between two messages.
func (o *Options) Interval() time.Duration { return time.Second / time.Duration(o.Rate) }

// Frame is one tick of the server's world.
type Frame struct {
	Tick   int
	Bodies []world.Body
	// Input is what the world was stepped with to get here.
	Input world.Input
}

// Sender is the server's end for one player.
type Sender interface {
	// Send is called once a tick, and calls emit with each message that leaves.
	Send(f *Frame, emit func(message []byte)) error
	// Ack takes what a Receiver wrote. What is too old does nothing.
	Ack(b []byte) error
	// SetBudget changes Options.Budget.
	SetBudget(bits int)
}

// Receiver is the client's end.
type Receiver interface {
	// Receive takes a message that came at that time. What is late or repeated does nothing.
	Receive(at time.Duration, message []byte) error
	// Draw is called once a tick. It fills drawn, of as many cubes as there are, with what is to be drawn now, and gives
	// the server's time of that, or false while there is nothing to draw.
	Draw(now time.Duration, drawn []game.Seen) (server time.Duration, ok bool)
	// Motion is how far the client itself has moved a cube in a tick of the last Draw, before what came put it elsewhere;
	// false for clients that only draw what came.
	Motion(cube int) (schema.Vec3, bool)
	// Ack appends what the sender is told, called once a tick, or gives dst as it is.
	Ack(dst []byte) []byte
	// Updated calls f with each cube whose state came since the last call.
	Updated(f func(cube int))
}

// Carrier is a Sender that carries its messages itself: emit is not called.
type Carrier interface {
	// Carried is what left so far, headers down to IP included.
	Carried() (bytes, datagrams int)
	// Close ends the way, at both ends.
	Close() error
}

// Start is what both ends know at first.
type Start struct {
	World  world.Params
	Bodies []world.Body
	Tick   int
}

// New makes both ends of a way. Both know the world as it is at first; over a network it would be sent reliably before.
func New(k Kind, at Start, o Options) (Sender, Receiver, error) {
	if o.Rate < 1 || game.Rate%o.Rate != 0 {
		return nil, nil, fmt.Errorf("rate is %d: want a divisor of %d", o.Rate, game.Rate)
	}
	switch k {
	case Full:
		return newFull(at.Bodies, o)
	case Snapshots:
		return newSnapshots(at.Bodies, o)
	case State:
		return newState(at, o)
	}
	return nil, nil, fmt.Errorf("there is no way %d", k)
}
