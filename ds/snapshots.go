package ds

import (
	"time"

	"github.com/uplink-rpc/uplink/internal/replication"
)

// SnapshotStream is a [World] as one player receives it, as snapshots.
type SnapshotStream[T any] struct{ playerStream }

// Offer offers the world to a player as snapshots, in Config.Joined for example. It is sent once
// the client has subscribed with client.SubscribeSnapshots and has the initial state. A repeated
// offer returns the same stream.
func (w *World[T]) Offer(p *Player) (*SnapshotStream[T], error) {
	to, err := w.streamsOf(p)
	if err != nil {
		return nil, err
	}
	s, err := w.world.Offer(to)
	if err != nil {
		return nil, err
	}
	return &SnapshotStream[T]{playerStream{w.world, s}}, nil
}

// playerStream is what streams of both codecs have in common.
type playerStream struct {
	world  *replication.World
	stream *replication.Stream
}

// Send sends the world's newest tick to this player alone, for games that send to some players less
// often than to others. It returns [ErrNotReady] while the client has not subscribed. A tick is
// sent once, and of state only when the bandwidth has room for more than headers. Other errors are
// those of the codec, such as [statesync.ErrBudget] if no object fits the bandwidth, or wrap
// net.ErrClosed.
func (s playerStream) Send() error {
	if s.world.Open() != nil {
		return errUncommitted
	}
	return s.stream.Send(time.Now())
}

// Ready reports whether the client has subscribed and has the initial state.
func (s playerStream) Ready() bool { return s.stream.Ready() }

// Stats returns the counts of this player.
func (s playerStream) Stats() ReplicationStats { return s.stream.Stats() }

// RTT returns the player's round-trip time.
func (s playerStream) RTT() time.Duration { return s.stream.RTT() }

// Stop ends the stream and tells the client. The world can be offered again, by either codec.
func (s playerStream) Stop() { s.stream.Stop() }
