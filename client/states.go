package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	istatesync "github.com/uplink-rpc/uplink/internal/statesync"
	"github.com/uplink-rpc/uplink/statesync"
)

// StateConfig configures [SubscribeState]. The zero value of each field means its default.
type StateConfig[T any] struct {
	// Handle, if set, is called with each update received, late ones included, on the goroutine
	// that receives for the connection. It should be short, and must not close the connection or
	// the view. The update is valid during the call. Without Handle, updates wait for
	// [StateView.Poll].
	Handle func(*StateUpdate[T])
	// OnMessage, if set, is called with each message of ds.StateStream.SendReliable, in order, on
	// the goroutine that receives. It is called before the first update of the message's tick or of
	// a later one is passed to Handle or queued for Poll. If such an update was received before the
	// message, or if the stream ends, OnMessage is called at once. It may keep the message.
	OnMessage func(tick uint64, message []byte)
	// AckHz is the maximum number of datagrams per second that contain only acks of the world, up
	// to 1000; default 30. Such a datagram takes about 52 bytes. Acks piggybacked on payloads of
	// RPCs take about 5 bytes and count towards AckHz: if they are more frequent, the client sends
	// no datagrams with acks only. More acks mean newer baselines and smaller updates.
	AckHz float64
}

// StateUpdate is a part of a world's state at one tick: the objects with the highest accumulated
// priorities that fit into the message.
type StateUpdate[T any] struct {
	// Tick is the server's tick.
	Tick uint64
	// Time is the time from tick 0 to Tick at the server's tick rate.
	Time time.Duration
	// Received is when the update was received.
	Received time.Time
	// Late means that an update of a newer tick was received before. If both updates contain an
	// object, its state in that other update is newer.
	Late bool
	// First means that the server starts the stream, because the client subscribed or reconnected.
	// Objects known before may be gone without notice, and ticks may restart. If the client closed
	// a view of the world just before, the update may still belong to the old stream. Then another
	// update with First follows for the new stream.
	First bool
	// Processed contains the number of processed calls of each RPC: see [Stream.Processed].
	Processed Processed
	// Inputs contains the inputs of ticks that no earlier update contained, in ascending order of
	// ticks. A tick is complete or marked as missing.
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
	all *stateUpdates[T]
}

// SubscribeState subscribes to the state of a world whose objects are a T. It waits for the
// server's offer (ds.World.OfferState) until ctx is done, or for Config.Transport.BindTimeout if
// ctx has no deadline. It returns an error if a field of the server's T cannot be converted
// ([*FieldError]), if the world is offered as snapshots, or not at all ([ErrNotOffered]). The view
// continues after a reconnection, with an update whose First is true.
func SubscribeState[T any](ctx context.Context, c *Conn, name string, cfg StateConfig[T]) (*StateView[T], error) {
	all, err := newStateUpdates(name, &cfg)
	if err != nil {
		return nil, fmt.Errorf("client: world %s: %w", name, err)
	}
	v, err := subscribe(ctx, c, name, all, "StateConfig", cfg.AckHz)
	if err != nil {
		return nil, err
	}
	return &StateView[T]{v, all}, nil
}

// Poll calls f with each update received since the last call, in the order of arrival, on the
// caller's goroutine, and returns their number. An update is valid during the call of f, which must
// not call Poll. At most 128 updates wait; more are dropped and counted as Unpolled, and the server
// sends their content again. If f panics, Poll ends, and the next Poll continues after that update.
// It is for views without StateConfig.Handle.
func (v *StateView[T]) Poll(f func(*StateUpdate[T])) int {
	r := v.all
	n := r.drain(f) // left by a Poll that panicked
	r.mu.Lock()
	r.queue, r.polled = r.polled, r.queue
	r.mu.Unlock()
	return n + r.drain(f)
}

// stateUpdates delivers the updates of a world to the game, also after a switch to another server.
// It is a [replication.View].
type stateUpdates[T any] struct {
	handle func(*StateUpdate[T])
	// onMessage is StateConfig.OnMessage, or nil.
	onMessage func(tick uint64, message []byte)

	name string
	own  *snapshot.Type[T]

	// The following fields belong to the goroutine that receives.
	feed  *stateFeed[T]     // feed of the current server
	fresh []*stateUpdate[T] // updates for handle, until Deliver

	mu     sync.Mutex
	queue  []*stateUpdate[T] // updates for the next Poll
	spare  []*stateUpdate[T]
	polled []*stateUpdate[T] // updates taken by Poll, until f has handled all
	next   int               // index in polled of the next update; used by Poll only
}

// stateFeed receives updates from one server.
type stateFeed[T any] struct {
	*stateUpdates[T]
	typ    *snapshot.Type[T] // own, or the server's version
	format *replication.StateFormat
	dec    *istatesync.Receiver
	tickHz float64
	early  []*stateUpdate[T] // updates received before the client switched to this server
}

// stateUpdate is an update with the memory to which it refers.
type stateUpdate[T any] struct {
	StateUpdate[T]
	inputs []statesync.Input
	data   []byte
}

func newStateUpdates[T any](name string, cfg *StateConfig[T]) (*stateUpdates[T], error) {
	typ, err := snapshot.Compile[T](name)
	if err != nil {
		return nil, err
	}
	format, err := replication.StateFormatOf(typ)
	if err != nil {
		return nil, err
	}
	return &stateUpdates[T]{handle: cfg.Handle, onMessage: cfg.OnMessage, name: name, own: typ, feed: &stateFeed[T]{typ: typ, format: format}}, nil
}

// NewReceiver implements [replication.View].
func (r *stateUpdates[T]) NewReceiver() replication.Receiver {
	return &stateFeed[T]{stateUpdates: r, typ: r.feed.typ, format: r.feed.format}
}

// Game implements [replication.View].
func (r *stateUpdates[T]) Game(tick uint64, message []byte) {
	if r.onMessage != nil {
		r.onMessage(tick, message)
	}
}

// Deliver implements [replication.View].
func (r *stateUpdates[T]) Deliver() {
	fresh := r.fresh
	r.fresh = r.fresh[:0]
	for _, u := range fresh {
		r.handle(&u.StateUpdate)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spare = append(r.spare, fresh...)
}

// pass queues an update for handle or Poll. The caller holds mu.
func (r *stateUpdates[T]) pass(u *stateUpdate[T]) {
	if r.handle != nil {
		r.fresh = append(r.fresh, u)
	} else {
		r.queue = append(r.queue, u)
	}
}

// drain calls f with each polled update. If f panics, the next call continues after that update.
func (r *stateUpdates[T]) drain(f func(*StateUpdate[T])) (n int) {
	for ; r.next < len(r.polled); n++ {
		u := r.polled[r.next]
		r.next++
		f(&u.StateUpdate)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spare = append(r.spare, r.polled...)
	r.polled, r.next = r.polled[:0], 0
	return n
}

func (r *stateUpdates[T]) unused() *stateUpdate[T] {
	n := len(r.spare)
	if n == 0 {
		return &stateUpdate[T]{}
	}
	u := r.spare[n-1]
	r.spare = r.spare[:n-1]
	return u
}

func (f *stateFeed[T]) Check(o *replication.Offer) (d message.Differences, err error) {
	if err := checkCodec(f.name, replication.StateCodec, o); err != nil {
		return d, err
	}
	if !slices.Equal(o.Fields, f.format.Fields) {
		format, source, err := replication.ParseStateFormat(f.name, o.Fields)
		if err != nil {
			return d, malformedFields(f.name, err)
		}
		typ, err := versionOf(f.own, f.name, source)
		if err != nil {
			return d, err
		}
		f.typ, f.format = typ, format
	}
	if o.Initial != 0 {
		return d, fmt.Errorf("%w: world %s: an initial state of %d bytes, want none", message.ErrMalformed, f.name, o.Initial)
	}
	addDifferences(&d, "", fieldNames(o.Fields), namesOf(f.own.Source()))
	return d, nil
}

// Show implements [replication.Receiver]. It delivers the updates that the server has sent so far.
func (f *stateFeed[T]) Show() {
	f.feed = f
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, u := range f.early {
		f.pass(u)
	}
	f.early = nil
}

func (f *stateFeed[T]) Knows(uint64) bool { return true }

func (f *stateFeed[T]) Begin(o *replication.Offer, _ []byte) (err error) {
	if f.dec, err = f.format.NewReceiver(o.PerTick); err != nil {
		return fmt.Errorf("client: world %s: %w", f.name, err)
	}
	f.tickHz = o.TickHz
	if f.feed == f {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.spare = append(f.spare, f.queue...)
		f.queue = f.queue[:0]
	}
	return nil
}

func (f *stateFeed[T]) Receive(message []byte, processed Processed, at time.Time, _ bool, st *ReplicationStats) (tick uint64, complete bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	waiting := f.queue
	if f.feed != f {
		waiting = f.early
	}
	if len(waiting) >= maxPolled {
		st.Unpolled++ // and is not acked: the server sends its content again
		return 0, false, errUnpolled
	}
	u, err := f.dec.Decode(message)
	if err == nil && (u.Tick < 0 || !replication.ValidTick(uint64(u.Tick), f.tickHz)) {
		err = fmt.Errorf("%w: tick %d", snapshot.ErrMalformed, u.Tick)
	}
	if err == nil && len(u.Inputs) > 0 && u.Inputs[0].Tick < 0 { // they ascend
		err = fmt.Errorf("%w: inputs of tick %d", snapshot.ErrMalformed, u.Inputs[0].Tick)
	}
	if err != nil {
		replication.CountError(st, err)
		return 0, false, err
	}
	st.Updates += uint64(len(u.Objects))
	out := f.unused()
	f.restore(out, u)
	out.Received, out.Processed = at, append(out.Processed[:0], processed...)
	if f.feed == f {
		f.pass(out)
	} else {
		f.early = append(f.early, out)
	}
	return out.Tick, true, nil
}

func (f *stateFeed[T]) End() {}

const maxPolled = 128

var errUnpolled = errors.New("client: too many updates wait for Poll")

// restore restores a decoded update into slices that are reused.
func (f *stateFeed[T]) restore(out *stateUpdate[T], u *istatesync.Update) {
	out.Tick, out.Time, out.Late, out.First = uint64(u.Tick), replication.TickTime(uint64(u.Tick), f.tickHz), u.Late, u.First
	n := len(u.Objects)
	out.Objects = slices.Grow(out.Objects[:0], n)[:n]
	for i := range u.Objects {
		o, s := &u.Objects[i], &out.Objects[i]
		s.ID, s.Generation, s.Gone = o.ID, o.Generation, o.Gone
		if o.Gone || f.typ.Restore(&s.State, o.Row) != nil {
			s.State = *new(T)
		}
	}
	count, size := 0, 0
	for _, t := range u.Inputs {
		count += len(t.Inputs)
		for _, i := range t.Inputs {
			size += len(i.Data)
		}
	}
	out.Inputs = slices.Grow(out.Inputs[:0], len(u.Inputs))
	out.inputs, out.data = slices.Grow(out.inputs[:0], count), slices.Grow(out.data[:0], size)
	for _, t := range u.Inputs {
		from := len(out.inputs)
		for _, i := range t.Inputs {
			at := len(out.data)
			out.data = append(out.data, i.Data...)
			out.inputs = append(out.inputs, statesync.Input{Player: i.Player, Data: out.data[at:len(out.data):len(out.data)]})
		}
		in := out.inputs[from:len(out.inputs):len(out.inputs)]
		out.Inputs = append(out.Inputs, statesync.TickInputs{Tick: t.Tick, Missing: t.Missing, Inputs: in})
	}
}

func (f *stateFeed[T]) AppendAck(dst []byte) []byte {
	a := f.dec.Ack()
	return a.Append(dst)
}
