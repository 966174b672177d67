// Package fakeconn implements a connection that stores the sent datagrams and messages, for tests
// of replication at both ends.
package fakeconn

import (
	"bytes"
	"math"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/transport"
)

// Conn is a connection with the AEAD overhead of transport.AES128GCM.
type Conn struct {
	Last      []byte    // last datagram or message sent
	Sent      [][]byte  // all datagrams and messages sent, if Keep is set
	Woken     time.Time // argument of the last Wake
	Keep      bool
	Full      bool // the reliable channel has no room
	Stall     int  // number of unacknowledged segments that Unacked returns
	RoundTrip time.Duration
	Busy      bool      // the path has no room for messages of worlds
	Slowed    float64   // last argument of WorldSlowed
	Back      time.Time // time that Returned returns: the client's first datagram after its last silence
	// Processed contains the bytes that AppendProcessed appends.
	Processed []byte
}

// Send stores a datagram.
func (c *Conn) Send(b []byte) error {
	c.Last = append(c.Last[:0], b...)
	if c.Keep {
		c.Sent = append(c.Sent, bytes.Clone(b))
	}
	return nil
}

// SendReliable stores a message, or returns transport.ErrBacklog.
func (c *Conn) SendReliable(b []byte) error {
	if c.Full {
		return transport.ErrBacklog
	}
	return c.Send(b)
}

// Wake stores the time.
func (c *Conn) Wake(at time.Time) { c.Woken = at }

// ID returns a constant.
func (c *Conn) ID() uint64 { return 1 }

// RTT returns RoundTrip.
func (c *Conn) RTT() time.Duration { return c.RoundTrip }

// Returned returns Back.
func (c *Conn) Returned() time.Time { return c.Back }

// Overhead returns the size of all headers.
func (c *Conn) Overhead() uint64 {
	return uint64(endpoint.IPSize + endpoint.HeaderSize + transport.AES128GCM.Overhead())
}

// AppendProcessed appends Processed.
func (c *Conn) AppendProcessed(dst []byte) []byte { return append(dst, c.Processed...) }

// MayWorlds reports whether Busy is not set.
func (c *Conn) MayWorlds(time.Time) bool { return !c.Busy }

// WorldSlowed sets Slowed.
func (c *Conn) WorldSlowed(_ string, share float64) { c.Slowed = share }

// Rate returns a rate that permits everything.
func (c *Conn) Rate() float64 { return math.MaxInt32 }

// Unacked returns Stall.
func (c *Conn) Unacked() int { return c.Stall }
