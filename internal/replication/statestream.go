package replication

import (
	"fmt"

	"github.com/uplink-rpc/uplink/statesync"
)

// StateStream is a stream of state synchronization. Its methods are safe for concurrent use, except
// Send.
type StateStream struct {
	*Stream
	sender *stateSender // guarded by the stream's mutex
}

// Prioritize adds to the priority of an object. It does nothing until the client has subscribed.
func (s *StateStream) Prioritize(id uint16, priority float64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != ready {
		return nil
	}
	return s.wrap(s.sender.sender.Prioritize(id, priority))
}

// AddInputs adds the inputs of a tick. It does nothing until the client has subscribed.
func (s *StateStream) AddInputs(tick uint64, inputs ...statesync.Input) error {
	if tick > MaxTick {
		return s.wrap(fmt.Errorf("inputs of tick %d, want up to %d", tick, uint64(MaxTick)))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != ready {
		return nil
	}
	return s.wrap(s.sender.sender.AddInputs(int64(tick), inputs...))
}

func (s *StateStream) wrap(err error) error {
	if err != nil {
		err = fmt.Errorf("ds: world %s: %w", s.mode.offer.Name, err)
	}
	return err
}

// SetViewer sets the object relative to which the positions of others may be coded.
func (s *StateStream) SetViewer(id uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sender.viewer, s.sender.hasViewer = id, true
	if s.phase == ready {
		s.sender.sender.SetViewer(id)
	}
}

// SetBandwidth changes the bandwidth limits of the stream.
func (s *StateStream) SetBandwidth(bandwidth, least int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sender.cfg.Bandwidth, s.sender.cfg.MinBandwidth = bandwidth, least
	if s.phase == ready {
		s.sender.setBandwidth()
	}
}

// Bandwidth returns the bandwidth that the rate control permits now, in bits per second.
func (s *StateStream) Bandwidth() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase == ready {
		return int(s.sender.rate.rate)
	}
	return s.sender.cfg.Bandwidth
}
