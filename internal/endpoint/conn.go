package endpoint

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/internal/transport/admission"
	"github.com/uplink-rpc/uplink/internal/transport/session"
	"github.com/uplink-rpc/uplink/transport"
)

// roomInterval is the interval at which WaitReliable checks whether there is room. It equals the
// interval of the channel's flushes.
const roomInterval = 10 * time.Millisecond

// Conn is one end of a connection. Its methods are safe for concurrent use. All but Close may be
// called by a [Handler].
type Conn struct {
	// Value is for the layer above, which may set it in [Handler.Opened] and read it in all later
	// calls of the handler. This package does not use it.
	Value any

	// Either dialer or shard owns the connection. The other one is nil, and for a dialed connection
	// id, claims and total have their zero values.
	dialer *dialer
	shard  *shard
	id     uint64 // session id
	pc     transport.PacketConn
	client uint64  // client id of the token
	claims *claims // claims of the client's token
	outbox connOutbox
	total  *transport.ListenerStats // counts of the shard
	lost   uint64                   // lost datagrams that total includes

	dirty bool // the connection is in the shard's dirtyConns, whose lock guards this field

	bulk func(b []byte, at time.Time) // receives bulk segments; set by the loop

	mu       sync.Mutex
	session  *session.Session
	finished error                    // error of SendReliable after Finish
	tap      func(transport.TapEvent) // may be nil; set by the loop, which reads it without the lock
	rtts     transport.RTTHistogram
	measured uint64 // number of measurements in rtts

	// Only the loop uses these.
	phase  phase
	number uint64 // number of the datagram that the handler is called with
	timer  timer
	hash   admission.Hash // hash of the hello that started the session
	kept   atomic.Bool    // see Keep
	// The shard via receives datagrams on the path, and finds the connection by it.
	path session.Path
	via  *shard
	// registered means that the directory lists the connection as open. If the client already had a
	// connection, this one is the successor of that connection, and the handler gets it when the
	// former connection has ended.
	registered bool
	waiting    bool
	successor  *Conn
}

// claims are the claims of a token that a connection keeps.
type claims struct {
	data     []byte
	issued   time.Time
	handover [sha256.Size]byte
}

// phase records which methods of the handler were called for a connection.
type phase uint8

const (
	pending phase = iota // Opened has not been called
	opened
	ended // Closed has been called, or never will be
)

// Send sends a copy of b, at most [Conn.MaxPayload] bytes, in one datagram. If the path does not
// carry it, Send sends several datagrams, and the peer receives all of b or nothing. It does not
// block and does not allocate. It returns [ErrTooLarge] or an error that wraps [net.ErrClosed];
// packet loss, also at this end, is not an error.
func (c *Conn) Send(b []byte) error {
	err := c.send(b)
	c.outbox.write()
	return err
}

// Queue is Send for one of many datagrams that a listener sends to its peers at once. The datagram
// leaves with the next [Listener.Flush] at the latest: earlier if 256 datagrams wait or any is sent
// by Send, in the order of the calls. On a dialed connection Queue is Send.
func (c *Conn) Queue(b []byte) error {
	if c.dialer != nil {
		return c.Send(b)
	}
	return c.send(b)
}

func (c *Conn) send(b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session.State() == session.Closed {
		return c.closedError()
	}
	now := time.Now()
	if c.tap != nil && len(b) <= c.session.MaxPayload() {
		number, size := c.session.NextSend(now, len(b))
		c.tap(transport.TapEvent{At: now, Sent: true, Number: number, Size: size, Body: b})
	}
	return c.session.Send(now, b)
}

// SendReliable queues a copy of b as a message, 1 byte to 16 KiB. It does not block: if
// [Config.ReliableQueue] or [Config.TotalReliableQueue] leaves no room, it returns an error that
// wraps session.ErrBacklog and names the limit. Other errors are [ErrTooLarge], one for an empty
// message, and one that wraps [net.ErrClosed]. The channel takes about 21 KB at each end, until 2 s
// after the last message was acknowledged.
func (c *Conn) SendReliable(b []byte) error {
	err := c.sendReliable(b)
	c.outbox.write()
	if err == nil {
		c.reschedule()
	}
	return err
}

func (c *Conn) sendReliable(b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session.State() == session.Closed {
		return c.closedError()
	}
	if c.finished != nil {
		return c.finished
	}
	now := time.Now()
	err := c.session.SendReliable(now, b)
	if err == nil && c.tap != nil {
		c.tap(transport.TapEvent{At: now, Sent: true, Reliable: true, Body: b})
	}
	return err
}

// ReliableRoom returns the size in bytes of the largest message that [Conn.SendReliable] accepts
// now. [Config.ReliableQueue] and [Config.TotalReliableQueue] bound it.
func (c *Conn) ReliableRoom() int {
	return locked(c, (*session.Session).ReliableRoom)
}

// WaitReliable waits until there is room for a reliable message of n bytes. Another goroutine may
// use the room before the caller does. If ctx is done, WaitReliable returns its error. After the
// end of the connection, the error wraps [net.ErrClosed]. A Handler must not call it, because it
// blocks the goroutine that makes room.
func (c *Conn) WaitReliable(ctx context.Context, n int) error {
	ticker := time.NewTicker(roomInterval)
	defer ticker.Stop()
	for {
		switch {
		case c.state() == session.Closed:
			return closedError{c.err()}
		case n > session.MaxMessage:
			return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, n, session.MaxMessage)
		case c.ReliableRoom() >= n:
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: no room for %d bytes of reliable data: %w", session.ErrBacklog, n, context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

// SetBulk opens the bulk channel: a second reliable channel, for much data, which does not delay
// the messages of SendReliable and sends at most rate bytes per second. Source appends the next
// message to b, up to 1,147 bytes, or nothing if there is none. Its data should have at most most
// bytes. It is called with the connection's lock held and must not call the Conn's methods. Deliver
// is called with each message of the peer as [Handler.Message] is. SetBulk may only be called by
// [Handler.Opened]. A peer that uses the channel of a connection without SetBulk violates the
// protocol.
func (c *Conn) SetBulk(rate int, source func(b []byte, most int) []byte, deliver func(b []byte, at time.Time)) {
	c.bulk = deliver
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session.SetBulk(float64(rate), source)
}

// WakeBulk reports that the source of the bulk channel has messages. It does not block.
func (c *Conn) WakeBulk() {
	c.update(func(s *session.Session) { s.WakeBulk(time.Now()) })
	c.reschedule()
}

// Unacked returns the number of reliable messages that are not acknowledged yet, including those
// not sent yet. If it is 0, all messages were received.
func (c *Conn) Unacked() int { return locked(c, (*session.Session).Unacked) }

// Finish ends the sending of messages if all of them were received, and reports whether it did.
// From then on, SendReliable returns an error that wraps [net.ErrClosed] and cause. Everything else
// continues.
func (c *Conn) Finish(cause error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.finished == nil && c.session.Unacked() == 0 {
		c.finished = closedError{cause}
	}
	return c.finished != nil
}

// Keep sets whether the connection of a listener continues when the same client opens another one.
// By default it ends with session.ErrReplaced.
func (c *Conn) Keep(keep bool) { c.kept.Store(keep) }

// Silence returns the time since the last datagram of the peer.
func (c *Conn) Silence(now time.Time) time.Duration {
	return now.Sub(locked(c, (*session.Session).Served))
}

// Returned returns the time of the last return of the peer: its first datagram after a second
// without one, its path migration, or its first echo after some seconds without echoes, which shows
// that it receives again. The zero time means never.
func (c *Conn) Returned() time.Time { return locked(c, (*session.Session).Returned) }

// Probe requests an answer of the peer.
func (c *Conn) Probe() {
	c.update(func(s *session.Session) { s.Probe(time.Now()) })
	c.reschedule()
}

// Number returns the packet number of the datagram that [Handler.Datagram] is being called with:
// the count of datagrams that the peer sent before it. It may only be called by that method.
func (c *Conn) Number() uint64 { return c.number }

// Missing returns the number of datagrams from first to last, by packet number, that did not arrive
// yet, as far as newer ones and the last 1,024 show.
func (c *Conn) Missing(first, last uint64) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.Missing(first, last)
}

// RTT returns the round-trip time, 0 before the first measurement; see [transport.Stats].
func (c *Conn) RTT() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.Path().RTT()
}

// MinRTT returns the lowest round-trip time of the last 30 to 40 s, 0 before the first measurement.
func (c *Conn) MinRTT() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.Path().MinRTT()
}

// MayWorlds reports whether the path has room for a message of a world now.
func (c *Conn) MayWorlds(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.MayWorlds(now)
}

// Rate returns the rate that the path carries as far as is known, in bits/s with all headers down
// to IP.
func (c *Conn) Rate() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return 8 * c.session.Path().Rate()
}

// Unanswered reports whether a dialed connection has waited for an answer of the listener for two
// seconds, after at least a second without any datagram from it.
func (c *Conn) Unanswered() bool { return locked(c, (*session.Session).Unanswered) }

// RemoteAddr returns the peer's current address.
func (c *Conn) RemoteAddr() netip.AddrPort { return locked(c, (*session.Session).Remote).Addr }

// MaxPayload returns the current maximum size of a payload of [Conn.Send], in bytes:
// [transport.MaxPayload], or more for a dialed connection whose path size probes were answered (see
// [transport.Stats]), which takes some seconds after the connection was opened or its local address
// changed.
func (c *Conn) MaxPayload() int { return locked(c, (*session.Session).MaxPayload) }

// ClientID returns the client id of the client's token; 0 for a dialed connection.
func (c *Conn) ClientID() uint64 { return c.client }

// UserData returns the user data of the client's token; nil if there is none, and for a dialed
// connection. The caller must not modify it.
func (c *Conn) UserData() []byte {
	if c.claims == nil {
		return nil
	}
	return c.claims.data
}

// Handover returns the handover hash of the client's token ([token.Claims.Handover]); zeros if
// there is none, and for a dialed connection.
func (c *Conn) Handover() (hash [sha256.Size]byte) {
	if c.claims != nil {
		hash = c.claims.handover
	}
	return hash
}

// Issued returns when the client's token was issued; the zero time for a dialed connection.
func (c *Conn) Issued() (t time.Time) {
	if c.claims != nil {
		t = c.claims.issued
	}
	return t
}

// Suite returns the suite of the connection.
func (c *Conn) Suite() transport.Suite { return locked(c, (*session.Session).Suite) }

// Overhead returns the number of bytes on the wire that each payload needs in addition to its own
// size, including IPv4 and UDP headers.
func (c *Conn) Overhead() uint64 {
	return uint64(IPSize + HeaderSize + c.Suite().Overhead())
}

// Rebind continues a dialed connection from another packet connection and local address, after a
// change of networks. A Conn does so by itself if sending fails for a second. The session stays the
// same; datagrams in transit are lost. Rebind returns an error for a connection of a listener. It
// also returns an error if the new packet connection cannot be opened; the connection then
// continues unchanged. After the end of the connection, the error wraps [net.ErrClosed].
func (c *Conn) Rebind() error {
	if c.dialer == nil {
		return errors.New("transport: only a dialed connection can change its own address")
	}
	return c.dialer.rebind()
}

// Wake requests a call of [Handler.Tick] of a dialed connection at a time. If there are several
// requests before a tick, only the one with the earliest time counts; the tick removes all of them.
// For a listener's connection it does nothing.
func (c *Conn) Wake(at time.Time) {
	if c.dialer != nil {
		c.dialer.alarm.requestTick(at)
	}
}

// LocalAddr returns the address of the packet connection.
func (c *Conn) LocalAddr() netip.AddrPort { return c.pc.LocalAddr() }

// ID returns the session's id, which is random and the same at both ends.
func (c *Conn) ID() uint64 { return locked(c, (*session.Session).ID) }

// SetTap registers a function that is called with each payload and message when it is sent, or
// before the handler receives it: by any goroutine, possibly with the connection's lock held. It
// must be quick and must not call the Conn's methods. Nil removes it. SetTap may only be called by
// a method of the [Handler].
func (c *Conn) SetTap(tap func(transport.TapEvent)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tap = tap
}

// Close closes the connection and notifies the peer. Unacknowledged reliable messages may be lost.
// For a dialed connection it waits until [Handler.Closed] has returned and the goroutine that calls
// the handler has ended. So the handler must not call Close; it may call CloseWith. Close may be
// called again; the error is always nil.
func (c *Conn) Close() error {
	if c.dialer == nil {
		c.CloseWith(session.ErrKicked, "")
		return nil
	}
	c.CloseWith(session.ErrQuit, "")
	<-c.dialer.done
	return nil
}

// CloseWith is Close with a cause, an error of package transport, and a text for the errors of both
// ends. The peer gets the first 64 bytes of the text. The peer of a dialed connection gets no cause
// except session.ErrQuit and session.ErrProtocol. CloseWith does not wait.
func (c *Conn) CloseWith(cause error, text string) {
	c.update(func(s *session.Session) { s.Close(cause, text) })
	c.reschedule()
}

// reschedule requests that the loop looks at the session's timers again, or at its end.
func (c *Conn) reschedule() {
	if c.dialer != nil {
		c.dialer.reschedule()
	} else {
		c.shard.dirty.add(c)
	}
}

// Stats returns the counts of the connection.
func (c *Conn) Stats() transport.Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.session.Stats()
	path := c.session.Path()
	last, _ := path.Last()
	return transport.Stats{
		Traffic: transport.Traffic{
			DatagramsSent:     s.DatagramsSent,
			BytesSent:         s.BytesSent,
			DatagramsReceived: s.DatagramsReceived,
			BytesReceived:     s.BytesReceived,
			SendFailed:        c.outbox.failed.Load(),
			Lost:              s.Lost,
			PathMigrations:    s.PathMigrations,
			SmallPaths:        s.SmallPaths,
			Dropped:           dropsOf(s.Verdicts[session.Malformed:]),
			RTTs:              c.rtts,
		},
		ProbesSent:  s.ProbesSent,
		ProbeBytes:  s.ProbeBytes,
		LossBursts:  s.LossBursts,
		MaxDatagram: c.session.MaxDatagram(),
		RTT:         path.RTT(),
		LastRTT:     last,
		MinRTT:      path.MinRTT(),
		Rate:        8 * path.Limit(),
		Queue:       path.Queue(),
		StreamBytes: path.StreamBytes(),
	}
}

// closedError returns the error of a closed connection. It is called with the lock held.
func (c *Conn) closedError() error { return closedError{c.session.Err()} }

func (c *Conn) loop() *loop {
	if c.dialer != nil {
		return &c.dialer.loop
	}
	return &c.shard.loop
}

// update calls f with the session, and writes the datagrams that it sends.
func (c *Conn) update(f func(s *session.Session)) {
	defer c.outbox.write()
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c.session)
}

// locked returns f's result for the session.
func locked[T any](c *Conn, f func(s *session.Session) T) T {
	c.mu.Lock()
	defer c.mu.Unlock()
	return f(c.session)
}

// schedule returns when to advance the session next, and whether it has ended.
func (c *Conn) schedule() (next time.Time, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.Next(), c.session.State() == session.Closed
}

func (c *Conn) state() session.State { return locked(c, (*session.Session).State) }

func (c *Conn) err() error { return locked(c, (*session.Session).Err) }

// finish closes the session, if it is not closed, because its loop has ended.
func (c *Conn) finish(cause error) {
	c.update(func(s *session.Session) { s.Close(cause, "") })
}

// notifyClosed calls Closed, once, if Opened was called.
func (c *Conn) notifyClosed(h Handler) {
	wasOpen := c.phase == opened
	c.phase = ended
	if wasOpen {
		defer c.recovered(h)
		h.Closed(c, c.err())
	}
}
