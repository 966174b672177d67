package session

// Unacked returns how many segments of reliable messages wait to be sent or acknowledged.
func (s *Session) Unacked() int { return s.reliable.Unacked() }
