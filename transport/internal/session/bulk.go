package session

import (
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/reliable"
)

// bulk is the bulk channel of a session, a second reliable channel. It is created when one end uses
// it for the first time.
type bulk struct {
	rate    float64
	source  func([]byte) []byte
	channel *reliable.Channel
}

// SetBulk sets the source of the messages of the bulk channel and its rate limit in bytes per
// second; see [reliable.Channel.SetBulk].
func (s *Session) SetBulk(rate float64, source func([]byte) []byte) {
	s.bulk.rate, s.bulk.source = rate, source
	if s.bulk.channel != nil { // the datagram that opened the session had segments of it
		s.bulk.channel.SetBulk(rate, source)
	}
}

// WakeBulk sends messages of the source of the bulk channel.
func (s *Session) WakeBulk(now time.Time) {
	if s.state == Open {
		s.openBulk().Wake(now)
		s.endIfExhausted()
	}
}

// ReceiveBulk is Receive for messages of the bulk channel.
func (s *Session) ReceiveBulk(now time.Time, dst []byte) ([]byte, bool) {
	if s.bulk.channel == nil {
		return dst, false
	}
	return s.receive(s.bulk.channel, now, dst)
}

// channelOf returns the channel to which received segments belong.
func (s *Session) channelOf(segments []byte) *reliable.Channel {
	if reliable.Conversation(segments) == s.conversation()+1 {
		return s.openBulk()
	}
	return &s.reliable
}

func (s *Session) openBulk() *reliable.Channel {
	if s.bulk.channel == nil {
		c := reliable.New(s.channel(s.conversation() + 1))
		if s.bulk.source != nil {
			c.SetBulk(s.bulk.rate, s.bulk.source)
		}
		s.bulk.channel = &c
	}
	return s.bulk.channel
}
