package session

import (
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/schema"
)

// Mode is a replication mode: how the state of the server's world reaches the client.
type Mode int

// The replication modes.
const (
	// ModeFull sends full uncompressed snapshots at a low rate. The client interpolates.
	ModeFull Mode = iota
	// ModeSnapshots sends compressed snapshots. The client interpolates.
	ModeSnapshots
	// ModeState synchronizes state: it sends inputs and the states of the cubes with the highest
	// priority. The client simulates.
	ModeState
)

var modeNames = []string{"full", "snapshots", "state"}

// String returns the name of the mode.
func (m Mode) String() string { return modeNames[m] }

// ParseMode returns the mode with that name.
func ParseMode(name string) (Mode, error) {
	for m, n := range modeNames {
		if n == name {
			return Mode(m), nil
		}
	}
	return 0, fmt.Errorf("mode is %q: want one of %q", name, modeNames)
}

// Options configure a mode.
type Options struct {
	// Rate is the maximum number of messages per second, a divisor of world.TickRate.
	Rate int
	// Budget is the maximum bandwidth in bits per second, including the headers down to IP. 0 means
	// no limit.
	Budget int
	// Jitter and Loss are initial estimates of the additional delay of messages and of the fraction
	// lost.
	Jitter time.Duration
	Loss   float64
	// Sight is the distance in meters within which the client of ModeSnapshots sees cubes: it
	// receives the cells of the world within that distance of its own cube. 0 means the whole
	// world. It applies to [Endpoints] only.
	Sight float64
	// NoRound and NoSmooth apply to ModeState. NoRound does not round the simulations of both ends,
	// and NoSmooth draws corrections without smoothing.
	NoRound, NoSmooth bool
}

// Interval returns the time between two messages at the maximum rate.
func (o *Options) Interval() time.Duration { return time.Second / time.Duration(o.Rate) }

// Frame is the server's world in one tick.
type Frame struct {
	Tick   int
	Bodies []world.Body
	// Input is the input of the step that led to this tick.
	Input world.Input
}

// Sender is the server's end of a mode, for one player.
type Sender interface {
	// Send is called once per tick. It calls emit with each message to send.
	Send(f *Frame, emit func(message []byte)) error
	// Ack applies an ack from the Receiver. Old acks are ignored.
	Ack(b []byte) error
	// SetBudget changes Options.Budget.
	SetBudget(bits int)
}

// Receiver is the client's end of a mode.
type Receiver interface {
	// Receive applies a message that arrived at that time. Late and duplicate messages are ignored.
	Receive(at time.Duration, message []byte) error
	// Draw is called once per tick. It writes the cubes as the client draws them now to drawn,
	// which has one element per cube, and returns the server's time of this state. It returns false
	// if there is nothing to draw yet.
	Draw(now time.Duration, drawn []world.Visual) (server time.Duration, ok bool)
	// Motion returns the distance by which the client's simulation moved a cube per tick of the
	// last Draw, without corrections. It returns false if the client does not simulate.
	Motion(cube int) (schema.Vec3, bool)
	// Ack is called once per tick. It appends an ack for the Sender to dst if there is one to send.
	Ack(dst []byte) []byte
	// Updated calls f with each cube whose state arrived since the last call.
	Updated(f func(cube int))
}

// Carrier is a Sender that transports its messages itself: it does not call emit.
type Carrier interface {
	// Traffic returns the counts of data sent so far. Bytes include the headers down to IP.
	Traffic() (bytes, datagrams int)
	// Close stops both ends.
	Close() error
}

// Initial is the world that both ends of a mode start with.
type Initial struct {
	World  world.Params
	Bodies []world.Body
	Tick   int
}

// newPair returns both ends of a mode. Over a network the initial world would be sent reliably.
func newPair(m Mode, initial Initial, o Options) (Sender, Receiver, error) {
	if o.Rate < 1 || world.TickRate%o.Rate != 0 {
		return nil, nil, fmt.Errorf("rate is %d: want a divisor of %d", o.Rate, world.TickRate)
	}
	switch m {
	case ModeFull:
		return newFull(initial.Bodies, o)
	case ModeSnapshots:
		return newSnapshots(initial.Bodies, o)
	case ModeState:
		return newState(initial, o)
	}
	return nil, nil, fmt.Errorf("unknown mode %d", m)
}
