package client

import (
	"context"
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/statesync"
)

// StateConfig configures [SubscribeState]. The zero value of each field means its default.
type StateConfig[T any] struct {
	// Handle, if set, is called with each update received, late ones included, on the goroutine
	// that receives for the connection. It should be short, and must not close the connection or
	// the view. The update is valid during the call. Without Handle, updates wait for
	// [StateView.Poll].
	Handle func(*StateUpdate[T])
	// AckHz is the maximum number of acks per second, up to 1000; default DefaultAckHz. More acks
	// mean newer baselines and smaller updates, for about 50 bytes each.
	AckHz float64
}

// StateUpdate is a part of a world's state at one tick: the objects that were due and fit.
type StateUpdate[T any] struct {
	// Tick is the server's tick.
	Tick uint64
	// Time is the tick's time by the server's tick rate.
	Time time.Duration
	// Received is when the update was received.
	Received time.Time
	// Late means that an update of a newer tick was received before. State of an object in that one
	// is newer.
	Late bool
	// First means that the server starts the stream, because the client subscribed or reconnected.
	// Objects known before may be gone without notice, and ticks may restart. If a view was closed
	// just before, the first update may still be one of that view's stream; another First then
	// follows.
	First bool
	// Inputs are those of ticks that were not known before, in ascending order. Each tick appears
	// once, complete or as missing.
	Inputs []statesync.TickInputs
	// Objects are in ascending order of ID.
	Objects []StateObject[T]
}

// StateObject is an object's state at an update's tick, as the server quantized it, or its removal.
type StateObject[T any] struct {
	ID         uint16
	Generation uint8
	Gone       bool
	State      T // the zero value if the object is gone
}

// StateView is a client's subscription to a world of objects T, as state, for a client that
// simulates the world too. Its methods are safe for concurrent use, except Poll, which is for one
// goroutine at a time.
type StateView[T any] struct {
	view
	receiver *stateReceiver[T]
}

// SubscribeState subscribes to the state of a world whose objects are a T. It waits for the
// server's offer (ds.World.OfferState) until ctx is done, or for Config.BindTimeout if ctx has no
// deadline. It returns an error if the server's T is a different one ([*WorldError]), if the world
// is offered as snapshots, or not at all ([ErrNotOffered]). The view continues after a
// reconnection, with an update whose First is true.
func SubscribeState[T any](ctx context.Context, c *Conn, name string, cfg StateConfig[T]) (*StateView[T], error) {
	r, err := newStateReceiver(name, &cfg)
	if err != nil {
		return nil, fmt.Errorf("client: world %s: %w", name, err)
	}
	v, err := c.subscribe(ctx, name, r, "StateConfig", cfg.AckHz)
	if err != nil {
		return nil, err
	}
	return &StateView[T]{v, r}, nil
}

// Poll calls f with each update received since the last call, in the order of arrival, on the
// caller's goroutine, and returns their number. An update is valid during the call of f, which must
// not call Poll. At most 128 updates wait; more are dropped and counted as Unpolled, and the server
// sends their content again. If f panics, Poll ends, and the next Poll continues after that update.
// It is for views without StateConfig.Handle.
func (v *StateView[T]) Poll(f func(*StateUpdate[T])) int { return v.receiver.poll(f) }
