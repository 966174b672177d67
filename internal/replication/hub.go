package replication

import (
	"slices"
	"sync"
)

// hub holds the streams of a world, whatever codec each has.
type hub struct {
	mu      sync.Mutex
	streams []*Stream
	past    Stats // of closed streams
}

func (h *hub) add(s *Stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.streams = append(h.streams, s)
}

// remove removes a closed stream and keeps its counts.
func (h *hub) remove(s *Stream) {
	st := s.Stats()
	st.BaselineAge = 0
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.Index(h.streams, s); i >= 0 {
		h.streams = slices.Delete(h.streams, i, i+1)
		h.past.Add(&st)
	}
}

// streamOf returns the stream of a player, or nil.
func (h *hub) streamOf(p Player) *Stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.streams {
		if s.player == p {
			return s
		}
	}
	return nil
}

// appendStreams appends all streams.
func (h *hub) appendStreams(dst []*Stream) []*Stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append(dst, h.streams...)
}
