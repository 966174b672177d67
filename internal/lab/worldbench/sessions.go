package worldbench

import "time"

type sessions struct{}

func openSessions(int) (*sessions, error)                                     { return &sessions{}, nil }
func (s *sessions) close()                                                    {}
func (s *sessions) send([]*player, int) (send, bare time.Duration, err error) { return 0, 0, nil }
