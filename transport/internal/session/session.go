// Package session is one connection as a state machine: handshake, packet numbers, heartbeats,
// timeout, the reliable channel, close. It has no socket, no goroutine and no clock: datagrams go in
// through [Session.Input] and out through a function, and each method that needs the time is told it.
// (KCP, below the reliable channel, reads its own clock.)
package session

import (
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/reliable"
	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// State is where a session is in its life. It only goes up.
type State uint8

// The states of a session.
const (
	// Connecting is a client that waits for its welcome, or a listener's session whose peer has not
	// yet shown that it got one.
	Connecting State = iota
	Open
	Closed
)

// Config is what a session is made with.
type Config struct {
	// Timeout is how long a session lives without an accepted datagram, and how long a client asks
	// for a welcome.
	Timeout time.Duration
	// Output sends a datagram to the peer. It is called from inside the session's methods, must not
	// call them, and must not keep the datagram.
	Output func(datagram []byte)
}

// Session is one end of a connection. It is not safe for concurrent use.
type Session struct {
	cfg   Config
	state State
	err   error // why it is Closed; nil if this end closed it

	client bool
	nonce  uint64
	id     uint64 // 0 until the client is welcome
	tag    uint8

	start time.Time // of this end's heartbeat clock
	heard time.Time // when the last datagram was accepted
	hello helloState
	beat  beatState
	doubt doubtState
	rtt   rtt

	recv     window
	number   uint64 // of the datagram that was accepted last
	next     uint64 // number of the next datagram out
	reliable reliable.Channel

	stats Stats
	buf   [wire.MaxDatagram]byte // the datagram being built
}

// ID returns the session's id, which is 0 until a client's session is [Open].
func (s *Session) ID() uint64 { return s.id }

// Tag returns the tag that the session's datagrams carry.
func (s *Session) Tag() uint8 { return s.tag }

// Nonce returns the nonce of the hello that began the session.
func (s *Session) Nonce() uint64 { return s.nonce }

// State returns where the session is in its life.
func (s *Session) State() State { return s.state }

// Err returns why the session is [Closed]: nil if by [Session.Close], else one of the errors of this
// package, perhaps wrapped.
func (s *Session) Err() error { return s.err }

// RTT returns the smoothed and the last round trip time; both are 0 before the first sample.
func (s *Session) RTT() (smoothed, last time.Duration) { return s.rtt.smoothed, s.rtt.last }

// RoundTrips returns how many round trips were measured.
func (s *Session) RoundTrips() uint64 { return s.rtt.samples }

// Number returns the packet number of the datagram that was accepted last, unwrapped.
func (s *Session) Number() uint64 { return s.number }

// Stats returns what the session has counted.
func (s *Session) Stats() Stats {
	s.stats.Lost = s.recv.lost
	return s.stats
}

// begin sets what both ends derive from the session's id: tag, first packet numbers, and KCP's
// conversation. Packet numbers start anywhere, so that a datagram of an earlier session between the
// same addresses is most likely out of the window.
func (s *Session) begin(id uint64) {
	s.id = id
	s.tag = wire.TagOf(id)
	toListener, toClient := uint16(id>>16), uint16(id>>32)
	if s.client {
		s.next, s.recv = uint64(toListener), newWindow(toClient)
	} else {
		s.next, s.recv = uint64(toClient), newWindow(toListener)
	}
	s.reliable = reliable.New(uint32(id>>24), wire.MaxBody, s.sendSegments)
}

// open begins the life proper: both ends send a heartbeat that asks for an answer, which gives them
// the round trip at once, and tells the listener that the welcome arrived.
func (s *Session) open(now time.Time) {
	s.state = Open
	s.sendHeartbeat(now, true)
}

// end makes the session Closed.
func (s *Session) end(err error) {
	s.state = Closed
	s.err = err
}
