package client

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/worlds"
	"github.com/uplink-rpc/uplink/snapshot"
	"github.com/uplink-rpc/uplink/statesync"
)

// stateInlet takes a world's state.
type stateInlet[T any] struct {
	handle func(*StateUpdate[T])
	name   string
	typ    *snapshot.Type[T]
	fields []string

	// Of the goroutine that receives:
	receiver *statesync.Receiver
	tickHz   float64
	fresh    *stateUpdate[T] // to be handed out

	mu     sync.Mutex
	queue  []*stateUpdate[T] // for Poll
	spare  []*stateUpdate[T]
	polled []*stateUpdate[T] // of Poll, until all of them are handled
	next   int               // of polled; of Poll alone
}

// stateUpdate is an update and the memory that it refers to.
type stateUpdate[T any] struct {
	StateUpdate[T]
	inputs []statesync.Input
	data   []byte
}

func newStateInlet[T any](name string, cfg *StateConfig[T]) (*stateInlet[T], error) {
	typ, err := snapshot.Compile[T](name)
	if err != nil {
		return nil, err
	}
	shared, err := worlds.StatesOf(typ, 1) // fields do not depend on the rate
	if err != nil {
		return nil, err
	}
	return &stateInlet[T]{handle: cfg.Handle, name: name, typ: typ, fields: shared.Fields}, nil
}

func (in *stateInlet[T]) check(o *control.DownOffer) error {
	if err := compareCodec(in.name, worlds.StateCodec, o); err != nil {
		return err
	}
	if o.Initial != 0 {
		return fmt.Errorf("%w: world %s: an initial state of %d bytes, where there is none", control.ErrMalformed, in.name, o.Initial)
	}
	return compareFields(in.name, in.fields, o.Fields)
}

func (in *stateInlet[T]) knows(uint64) bool { return true }

func (in *stateInlet[T]) begin(o *control.DownOffer, _ []byte) error {
	shared, err := worlds.StatesOf(in.typ, o.TickHz)
	if err == nil {
		in.receiver, err = statesync.NewReceiver(shared.Schema, shared.Config)
	}
	if err != nil {
		return fmt.Errorf("client: world %s: %w", in.name, err)
	}
	in.tickHz = o.TickHz
	in.mu.Lock()
	defer in.mu.Unlock()
	in.spare = append(in.spare, in.queue...)
	in.queue = in.queue[:0]
	return nil
}

func (in *stateInlet[T]) take(message []byte, at time.Time, st *ReplicationStats) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.queue) == mostPolled {
		st.Unpolled++ // and is not acked: the server sends what it has in it again
		return errUnpolled
	}
	u, err := in.receiver.Decode(message)
	if err == nil && u.Tick < 0 {
		err = fmt.Errorf("%w: tick %d", snapshot.ErrMalformed, u.Tick)
	}
	if err == nil && len(u.Inputs) > 0 && u.Inputs[0].Tick < 0 { // they ascend
		err = fmt.Errorf("%w: inputs of tick %d", snapshot.ErrMalformed, u.Inputs[0].Tick)
	}
	if err != nil {
		st.count(err)
		return err
	}
	st.Updates += uint64(len(u.Objects))
	out := in.empty()
	in.keep(out, u)
	out.Received = at
	if in.handle != nil {
		in.fresh = out
	} else {
		in.queue = append(in.queue, out)
	}
	return nil
}

// mostPolled is how many updates wait for Poll.
const mostPolled = 128

var errUnpolled = errors.New("client: too many updates wait for Poll")

// empty gives an update to be filled.
func (in *stateInlet[T]) empty() *stateUpdate[T] {
	n := len(in.spare)
	if n == 0 {
		return &stateUpdate[T]{}
	}
	u := in.spare[n-1]
	in.spare = in.spare[:n-1]
	return u
}

// keep makes out a copy of what was decoded, in slices that are reused.
func (in *stateInlet[T]) keep(out *stateUpdate[T], u *statesync.Update) {
	out.Tick, out.Time, out.Late, out.First = uint64(u.Tick), timeOf(uint64(u.Tick), in.tickHz), u.Late, u.First
	n := len(u.Objects)
	out.Objects = slices.Grow(out.Objects[:0], n)[:n]
	for i := range u.Objects {
		o, s := &u.Objects[i], &out.Objects[i]
		s.ID, s.Generation, s.Gone = o.ID, o.Generation, o.Gone
		if o.Gone || in.typ.Restore(&s.State, o.Row) != nil {
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
	out.Inputs = append(out.Inputs[:0], u.Inputs...)
	out.inputs, out.data = slices.Grow(out.inputs[:0], count), slices.Grow(out.data[:0], size)
	for k := range out.Inputs {
		t := &out.Inputs[k]
		from := len(out.inputs)
		for _, i := range t.Inputs {
			at := len(out.data)
			out.data = append(out.data, i.Data...)
			i.Data = out.data[at:len(out.data):len(out.data)]
			out.inputs = append(out.inputs, i)
		}
		t.Inputs = out.inputs[from:len(out.inputs):len(out.inputs)]
	}
}

func (in *stateInlet[T]) deliver() {
	if in.fresh == nil {
		return
	}
	u := in.fresh
	in.fresh = nil
	in.handle(&u.StateUpdate)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.spare = append(in.spare, u)
}

func (in *stateInlet[T]) poll(f func(*StateUpdate[T])) int {
	n := in.drain(f) // what a Poll that did not return has left
	in.mu.Lock()
	in.queue, in.polled = in.polled, in.queue
	in.mu.Unlock()
	return n + in.drain(f)
}

// drain calls f with what was polled and not handled yet, and returns its number. If f panics, the
// next call goes on after that update.
func (in *stateInlet[T]) drain(f func(*StateUpdate[T])) (n int) {
	for ; in.next < len(in.polled); n++ {
		u := in.polled[in.next]
		in.next++
		f(&u.StateUpdate)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.spare = append(in.spare, in.polled...)
	in.polled, in.next = in.polled[:0], 0
	return n
}

func (in *stateInlet[T]) appendAck(dst []byte) []byte {
	a := in.receiver.Ack()
	return a.Append(dst)
}
