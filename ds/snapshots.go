package ds

import (
	"fmt"
	"time"
)

// SnapshotStream is what one player gets of a [World].
type SnapshotStream[T any] struct {
	world *World[T]
	down  *downstream
}

// Snapshots offers the player the server's world of objects T, as [World.Offer] does, where there is only one such world.
func Snapshots[T any](p *Player) (*SnapshotStream[T], error) {
	w, err := worldOf[T](p.server)
	if err != nil {
		return nil, err
	}
	return w.Offer(p)
}

// worldOf gives the only world of objects T.
func worldOf[T any](s *Server) (only *World[T], err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, src := range s.sources {
		w, ok := src.(*World[T])
		if ok && only != nil {
			return nil, fmt.Errorf("ds: there are several worlds of %T: use its Offer or OfferState", *new(T))
		}
		if ok {
			only = w
		}
	}
	if only == nil {
		return nil, fmt.Errorf("ds: there is no world of %T: make it with NewWorld", *new(T))
	}
	return only, nil
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
func (s *SnapshotStream[T]) Stats() DownstreamStats { return s.down.counted() }

// RTT is the player's.
func (s *SnapshotStream[T]) RTT() time.Duration { return s.down.player.RTT() }

// Stop ends it: no more is sent, and the client is told. The world can be offered again.
func (s *SnapshotStream[T]) Stop() { s.down.quit() }
