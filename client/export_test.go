package client

import (
	"context"
	"errors"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// Held returns the length of each list of a connection that a server can make longer, by name, and
// those of its views. Names of sizes in bytes say so. It is for calls while nothing is received.
func Held(c *Conn, views ...interface{ addHeld(held map[string]int) }) map[string]int {
	held := map[string]int{"offers": len(c.subscriptions.Offered()), "worlds": len(c.subscriptions.Stats())}
	for _, v := range views {
		v.addHeld(held)
	}
	for _, s := range c.current.senders {
		s.mu.Lock()
		held["streams"]++
		held["requests"] += s.pending
		s.mu.Unlock()
	}
	return held
}

func (v *SnapshotView[T]) addHeld(held map[string]int) {
	held["initial bytes"], _ = v.conn.subscriptions.Received(v.sub)
	held["snapshot bytes"] = v.all.feed.Memory()
	held["objects"] = cap(v.objects.scratch.Objects)
}

func (v *StateView[T]) addHeld(held map[string]int) {
	held["updates"] = len(v.all.queue)
	held["spare updates"] = len(v.all.spare)
}

// SubscribeFaulty subscribes to a world of objects T with a decoder that decodes nothing. It calls
// offered with each offer, and message with each message.
func SubscribeFaulty[T any](ctx context.Context, c *Conn, world string, offered, message func()) error {
	typ, err := snapshot.Compile[T](world)
	if err != nil {
		return err
	}
	d := replication.NewSnapshotDecoder(typ.Schema(), typ.Schema().NewSet())
	_, err = subscribe(ctx, c, world, &faulty{d, offered, message}, "", 0)
	return err
}

type faulty struct {
	replication.SnapshotDecoder
	offered, message func()
}

func (r *faulty) NewReceiver() replication.Receiver { return r }

func (r *faulty) Show()               {}
func (r *faulty) Deliver()            {}
func (r *faulty) End()                {}
func (r *faulty) Game(uint64, []byte) {}

func (r *faulty) Check(*replication.Offer) (message.Differences, error) {
	r.offered()
	return message.Differences{}, nil
}

func (r *faulty) Receive([]byte, Processed, time.Time, bool, *ReplicationStats) (uint64, bool, error) {
	r.message()
	return 0, false, errors.New("not decoded")
}

// LoopStream returns the stream of a loop.
func LoopStream[S, I any](l *Loop[S, I]) *Stream[I] { return l.stream }
