package ds

import "time"

// SnapshotStream is what one player gets of a [World].
type SnapshotStream[T any] struct {
	world *World[T]
	down  *downstream
}

// Send sends the world's newest tick to this player alone, for games that send to some less often than to others. It is
// [ErrNotReady] while the client does not take part. A tick that was sent already is not sent again. Other errors say
// why it could not be sent, or wrap net.ErrClosed.
func (s *SnapshotStream[T]) Send() error { return s.world.sendTo(s.down) }

// Ready says whether the client takes part and has the initial state.
func (s *SnapshotStream[T]) Ready() bool {
	st := s.down.counted()
	return st.Ready > 0
}

// Stats gives what was counted for this player.
func (s *SnapshotStream[T]) Stats() ReplicationStats { return s.down.counted() }

// RTT is the player's.
func (s *SnapshotStream[T]) RTT() time.Duration { return s.down.player.RTT() }

// Stop ends it: no more is sent, and the client is told. The world can be offered again.
func (s *SnapshotStream[T]) Stop() { s.down.quit() }
