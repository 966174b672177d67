package client

import (
	"context"
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/statesync"
)

// StateConfig says how a world's state is taken. The zero value of each field means its default.
type StateConfig[T any] struct {
	// Handle, if set, gets each update as it comes, also those that newer ones overtook, on the goroutine that receives for
	// the connection: it should be short, and must not close the connection or the view. The update is valid while it
	// runs. Without it updates wait for [StateView.Poll].
	Handle func(*StateUpdate[T])
	// AckHz is how often a second updates are acked at most, up to 1000: more often means younger baselines and smaller
	// updates, for about 50 bytes each. Default DefaultAckHz.
	AckHz float64
}

// StateUpdate is what the server says of a world at one tick: not all of it, but what was due and fit.
type StateUpdate[T any] struct {
	// Tick is the server's, Time what it is at the server's ticks a second, Received when the update came.
	Tick     uint64
	Time     time.Duration
	Received time.Time
	// Late says that one of a newer tick came before: what that said of the same object is newer.
	Late bool
	// First says that the server begins, as the client joined or came back: objects that there were before may be gone
	// without a word, and ticks may begin anew. Where a view was closed just before, an update of that one may be the first, and
	// another one then again.
	First bool
	// Inputs are those of ticks that were not known before, in ascending order: each tick comes once, whole or as missing.
	Inputs []statesync.TickInputs
	// Objects ascend by ID.
	Objects []StateObject[T]
}

// StateObject is an object's state at an update's tick, as the server quantized it, or that it is gone.
type StateObject[T any] struct {
	ID         uint16
	Generation uint8
	Gone       bool
	State      T // the zero value if it is gone
}

// StateView is one of the server's worlds as its state arrives, for a client that simulates it, too: objects T. Its
// methods are safe for concurrent use, but for Poll, which is for one goroutine at a time.
type StateView[T any] struct {
	down *downstream
	in   *stateInlet[T]
}

// SubscribeState subscribes to the state of a world whose objects are a T. It waits for the server's
// offer (ds.World.OfferState) until ctx is done, or for Config.BindTimeout if ctx has no deadline. It
// returns an error if the server's T is a different one ([*WorldError]), if the world is offered as
// snapshots, or not at all ([ErrNotOffered]). The view continues after a reconnection, with an update
// whose First is true.
func SubscribeState[T any](ctx context.Context, c *Conn, name string, cfg StateConfig[T]) (*StateView[T], error) {
	ackHz, err := ackRate("StateConfig", cfg.AckHz)
	var in *stateInlet[T]
	if err == nil {
		in, err = newStateInlet(name, &cfg)
	}
	if err != nil {
		return nil, fmt.Errorf("client: world %s: %w", name, err)
	}
	d := &downstream{conn: c, name: name, inlet: in, ackHz: ackHz, answer: make(chan error, 1)}
	if err := c.takeDown(ctx, d); err != nil {
		return nil, err
	}
	return &StateView[T]{down: d, in: in}, nil
}

// Poll calls f with each update that came since the last call, in the order in which they came, on the caller's goroutine,
// and gives their number. An update is valid while f runs, which must not call Poll. If it is not called for 128 updates
// those after are dropped, and counted as Unpolled; the server sends what they had once more. It is for views without a
// StateConfig.Handle. A panic of f ends Poll and reaches its caller. The next Poll begins with the
// update after that one.
func (v *StateView[T]) Poll(f func(*StateUpdate[T])) int { return v.in.poll(f) }

// Err is why the server's world is not taken any more, after a reconnection to a server that has another one; nil while
// all is well.
func (v *StateView[T]) Err() error { return v.down.err() }

// Stats gives what was counted so far.
func (v *StateView[T]) Stats() ReplicationStats { return v.down.safelyCounted() }

// Close ends the view and tells the server; the world can be taken again. It may be called more than once.
func (v *StateView[T]) Close() error {
	v.down.conn.dropDown(v.down)
	return nil
}
