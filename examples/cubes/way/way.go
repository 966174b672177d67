// Package way has the ways down: how what the server simulates becomes what a client draws. Each is a Sender and a
// Receiver. None has a clock, a socket or a goroutine: ticks and times are arguments.
package way

import (
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/examples/cubes/game"
	"github.com/uplink-rpc/uplink/examples/cubes/world"
)

// Kind is which way.
type Kind int

// The ways.
const (
	// Full sends the whole world, uncompressed, a few times a second, and the client interpolates.
	Full Kind = iota
	// Snapshots sends compressed snapshots, and the client interpolates.
	Snapshots
)

var names = []string{"full", "snapshots"}

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
	// Ack appends what the sender is told, called once a tick, or gives dst as it is.
	Ack(dst []byte) []byte
	// Updated calls f with each cube whose state came since the last call.
	Updated(f func(cube int))
}

// New makes both ends of a way for worlds like the one that begins as initial.
func New(k Kind, initial []world.Body, o Options) (Sender, Receiver, error) {
	if o.Rate < 1 || game.Rate%o.Rate != 0 {
		return nil, nil, fmt.Errorf("rate is %d: want a divisor of %d", o.Rate, game.Rate)
	}
	switch k {
	case Full:
		return newFull(initial, o)
	case Snapshots:
		return newSnapshots(initial, o)
	}
	return nil, nil, fmt.Errorf("there is no way %d", k)
}
