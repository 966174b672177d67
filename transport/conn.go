package transport

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/gate"
	"github.com/uplink-rpc/uplink/transport/internal/session"
	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// Conn is a connection: one end of a session with a peer. Its methods are safe for concurrent use, and all
// but Close may be called from inside a [Handler].
type Conn struct {
	// Value is for the layer above; nothing here touches it. Set in [Handler.Opened], it can be
	// read in all later calls of the handler.
	Value any

	owner  owner
	shard  *shard // that owns it; nil for a dialed connection
	id     uint64 // of the session, likewise 0
	pc     PacketConn
	claims claims
	outbox *outbox       // of the loop
	all    *tripCounters // of the shard; nil for a dialed connection

	failed atomic.Uint64 // datagrams that the packet connection did not take
	poked  bool          // it is among the shard's pokes, whose lock guards this

	mu       sync.Mutex
	session  *session.Session
	tap      func(TapEvent) // may be nil; set by the loop, which reads it without the lock
	cause    error          // of the end, if the session does not know it
	trips    RTTHistogram
	measured uint64 // round trips that are in trips

	// Only the loop touches these.
	life   connLife
	number uint64 // of the datagram that the handler gets
	wake   wakeup
	hash   gate.Hash // of the hello that began it
	// Where a listener looks for it: the shard via gets what comes from the address at.
	at  netip.AddrPort
	via *shard
	// The client had another connection before; the handler hears of this one when that has ended.
	admitted bool  // was told to the directory as open
	waits    bool  // for that end
	heir     *Conn // that takes this one's place
}

// claims are what a client's token says of it.
type claims struct {
	client uint64
	data   []byte
}

// connLife is how much of a connection's life the handler knows.
type connLife uint8

const (
	unborn connLife = iota // Opened has not been called
	alive
	dead // Closed has been called, or never will be
)

// owner is what a Conn belongs to. It is called without the Conn's lock.
type owner interface {
	// rescheduled tells that the session may want to be advanced earlier.
	rescheduled(c *Conn)
	// wake has the handler ticked at that time, if it is not ticked anyway.
	wake(at time.Time)
	// rebind gives the connection another packet connection.
	rebind(c *Conn) error
	// closed tells that this end has closed the session.
	closed(c *Conn)
	// wait returns when the goroutine that ran only for the connection has ended, if there is one.
	wait()
}

// write is the session's output. It runs with the lock held.
func (c *Conn) write(to netip.AddrPort, b []byte) {
	c.outbox.send(b, to, &c.failed)
}

// Send sends a copy of b as one datagram, at most [Conn.MaxPayload] bytes. It waits for nothing and
// allocates nothing. It returns [ErrTooLarge], or an error that wraps [net.ErrClosed]; that the datagram is lost,
// here or later, is not an error.
func (c *Conn) Send(b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session.State() == session.Closed {
		return c.closedError()
	}
	if c.tap != nil && len(b) <= c.session.MaxPayload() {
		c.sent(b)
	}
	return c.session.Send(b)
}

// SendReliable queues a copy of b as a message, 1 to 16 KiB. It does not wait: if the peer
// has left too much unacknowledged it returns [ErrBacklog]. Other errors are [ErrTooLarge], and one
// that wraps [net.ErrClosed]. The first use, by either end, costs about 29 KB on both.
func (c *Conn) SendReliable(b []byte) error {
	if err := c.sendReliable(b); err != nil {
		return err
	}
	c.owner.rescheduled(c)
	return nil
}

func (c *Conn) sendReliable(b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session.State() == session.Closed {
		return c.closedError()
	}
	now := time.Now()
	err := c.session.SendReliable(now, b)
	if err == nil && c.tap != nil {
		c.tap(TapEvent{At: now, Sent: true, Reliable: true, Body: b})
	}
	return err
}

// Number returns the packet number of the datagram that [Handler.Datagram] is being called with, in the
// order in which the peer sent them: it says which of two was sent first, and how many may lie between. It
// is for calls from inside that method.
func (c *Conn) Number() uint64 { return c.number }

// RTT returns the smoothed round trip time, 0 before the first measurement.
func (c *Conn) RTT() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	smoothed, _ := c.session.RTT()
	return smoothed
}

// RemoteAddr returns the peer's address: of a listener's connection, where its client is now.
func (c *Conn) RemoteAddr() netip.AddrPort {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.Remote()
}

// MaxPayload returns the size of the largest payload of [Conn.Send] now, in bytes: [MaxPayload], or for a dialed
// connection more where larger datagrams have been shown to reach the peer ([Stats]). That is so some seconds after
// the connection opened, and begins anew when the local address changes.
func (c *Conn) MaxPayload() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.MaxPayload()
}

// ClientID returns the client id that the client's token names; 0 for a dialed connection.
func (c *Conn) ClientID() uint64 { return c.claims.client }

// UserData returns what the client's token brings from its issuer: nil if nothing, and for a dialed connection.
// The caller must not write to it.
func (c *Conn) UserData() []byte { return c.claims.data }

// Suite returns how the connection's datagrams are sealed.
func (c *Conn) Suite() Suite {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.Suite()
}

// Overhead returns how many bytes there are around each payload, IPv4's and UDP's headers included.
func (c *Conn) Overhead() uint64 {
	return uint64(IPSize + HeaderSize + c.Suite().Overhead())
}

// Rebind has a dialed connection go on from another packet connection, and so another local address: after a
// change of networks. It does so by itself when for a second nothing could be sent. The session stays the same; what is on its way is lost. For a
// listener's connection it is an error; other errors are that of opening the packet connection, with
// which nothing has changed, and one that wraps [net.ErrClosed].
func (c *Conn) Rebind() error { return c.owner.rebind(c) }

// Wake has [Handler.Tick] of a dialed connection called at that time, or soon after it; if it was asked for several
// times, at the earliest of them. A tick answers all that was asked for before it. A listener's connections need
// no wake, and it does nothing there.
func (c *Conn) Wake(at time.Time) { c.owner.wake(at) }

// LocalAddr returns the address of the packet connection.
func (c *Conn) LocalAddr() netip.AddrPort { return c.pc.LocalAddr() }

// ID returns the session's id, random and the same at both ends.
func (c *Conn) ID() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.ID()
}

// Close closes the connection and tells the peer. Reliable messages that the peer has not acknowledged
// may be lost. A dialed connection's Close waits until [Handler.Closed] has returned and the goroutine
// has ended, so it must not be called from inside the handler: CloseWith may. Closing again does no harm;
// the error is always nil.
func (c *Conn) Close() error {
	c.CloseWith("")
	c.owner.wait()
	return nil
}

// CloseWith is Close with a reason for the peer's error, cut off at 64 bytes, and does not wait.
func (c *Conn) CloseWith(reason string) {
	c.mu.Lock()
	c.session.Close(wire.CloseNormal, reason)
	c.mu.Unlock()
	c.owner.closed(c)
}

// closedError is called with the lock held.
func (c *Conn) closedError() error {
	if c.cause != nil {
		return closedError{c.cause}
	}
	return closedError{c.session.Err()}
}
