package client

import (
	"errors"
	"time"

	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
)

// combines says whether frames can share a payload.
func (s *stream) combines() bool { return !s.reliable && s.conn.cfg.Codec == rpcdelta.Adaptive }

// perPayload is how many frames leave in one payload now.
func (s *stream) perPayload() int {
	if !s.combines() {
		return 1
	}
	return max(s.every, s.limits.every)
}

// mostFrames is how many new frames a datagram will bring at most, which the server
// is told.
func (s *stream) mostFrames() int {
	switch {
	case s.reliable:
		return 1
	case s.conn.cfg.coalesces():
		return rpcdelta.MaxHeld
	case s.conn.cfg.Bandwidth != 0 && s.combines():
		return MaxSendEvery
	}
	return s.every
}

// hold holds f back, or sends it and those that are held if they are n.
func (s *stream) hold(f *schema.Frame, n int) error {
	err := s.enc.Hold(f)
	switch {
	case errors.Is(err, rpcdelta.ErrTooLarge): // but perhaps not as a difference
		if err := s.sendHeld(); err != nil {
			return err
		}
		return s.sendAlone(f)
	case err != nil:
		s.countRefused(err)
		return err
	case s.enc.Held() >= n:
		return s.sendHeld()
	case s.enc.Held() == 1:
		s.waiting = time.Now()
		s.wakeAt(s.heldUntil())
	}
	return nil
}

// sendHeld sends what is held back.
func (s *stream) sendHeld() error {
	for s.enc.Held() > 0 {
		var info rpcdelta.Info
		s.buf, info = s.enc.AppendHeld(s.buf[:0])
		if err := s.post(&info); err != nil {
			return err
		}
	}
	return nil
}

// tickHeld sends what has been held back for as long as the calls should have taken
// to be enough, and says when that will be so; zero: nothing is held.
func (s *stream) tickHeld(now time.Time) time.Time {
	if s.enc == nil || s.enc.Held() == 0 {
		return time.Time{}
	}
	if due := s.heldUntil(); now.Before(due) {
		return due
	}
	_ = s.sendHeld() // an error is told to the next Send
	return time.Time{}
}

// heldUntil is until when the frames may wait that are held.
func (s *stream) heldUntil() time.Time {
	return s.waiting.Add(time.Duration(float64(s.perPayload()) / s.rate * float64(time.Second)))
}

// flush sends what is held back.
func (s *stream) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(); err != nil {
		return err
	}
	return s.sendHeld()
}

// limit keeps the stream to a budget.
func (s *stream) limit(l limits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits = l
	if s.enc != nil {
		s.enc.LimitRedundancy(l.redundancy)
	}
}

// redundancy is how many older payloads ride along now.
func (s *stream) redundancy() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.enc == nil {
		return 0
	}
	return s.enc.Redundancy()
}
