package client

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/transport"
)

// MaxMessage is the most bytes of a message.
const MaxMessage = control.MaxMessage

// ErrBacklog says that a message or a reliable frame was not sent since too much
// waits already: try again later.
var ErrBacklog = transport.ErrBacklog

// SendReliable sends a copy of b, at most [MaxMessage] bytes, to the server:
// ds.Config.OnMessage gets it. Messages come in order and every one, while the
// connection lives; those on their way when it is lost may be lost with it. It is for
// small ones, chat and the like: a client sends 64 KiB a second, 128 KiB at once,
// each message counted with 64 bytes more. Beyond that, and if the server has left too
// many unacknowledged, it is [ErrBacklog]; it never waits. Other errors are those of
// [Stream.Send].
func (c *Conn) SendReliable(b []byte) error {
	if len(b) > MaxMessage {
		return fmt.Errorf("client: a message of %d bytes, at most %d can be sent", len(b), MaxMessage)
	}
	link, err := c.admit(time.Now(), len(b))
	if err != nil {
		return err
	}
	err = link.SendReliable(control.AppendMessage(make([]byte, 0, 1+len(b)), b))
	switch {
	case errors.Is(err, net.ErrClosed):
		return c.ended()
	case err != nil:
		return fmt.Errorf("client: send a message: %w", err)
	}
	return nil
}

// admit gives the link for a message, or says why none can be sent now.
func (c *Conn) admit(now time.Time, size int) (*transport.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.link == nil || c.leaving:
		return nil, c.whyEnded()
	case !c.messages.Take(now.Sub(c.started), control.ClientMessages, control.MessageCost(size)):
		return nil, fmt.Errorf("client: send a message: %w", ErrBacklog)
	}
	return c.link, nil
}

// ended says why there is no link.
func (c *Conn) ended() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.whyEnded()
}

// whyEnded is ended with c.mu held.
func (c *Conn) whyEnded() error {
	switch {
	case c.isClosed():
		return fmt.Errorf("client: %w", net.ErrClosed)
	case c.gone != nil:
		return c.gone
	}
	return ErrReconnecting
}

// offerRate limits the offers of worlds that a connection accepts, over all reconnections. Each one that names a world
// in use builds a decoder, and is logged if it is refused.
var offerRate = ratelimit.Rate{PerSecond: 1, Burst: 4 * replication.MaxStreams}

// Message takes a message of the game's own, or what precedes a world's.
func (e *events) Message(link *transport.Conn, b []byte, at time.Time) {
	t, body, err := control.Split(b)
	switch {
	case err != nil:
	case t == control.Offer && !e.offers.Take(at.Sub(e.started), offerRate, 1):
		err = fmt.Errorf("%w: more than %v offers of worlds at once and %v a second", transport.ErrProtocol, offerRate.Burst, offerRate.PerSecond)
	case t == control.Offer || t == control.Piece || t == control.Stop:
		err = e.worlds.HandleMessage(link, t, body, at)
	case t != control.Message || len(body) > MaxMessage:
		err = fmt.Errorf("%w: type %#x with %d bytes on the reliable channel", control.ErrMalformed, byte(t), len(body))
	case e.cfg.OnMessage != nil:
		e.cfg.OnMessage(body)
	}
	if err != nil {
		e.malformed()
	}
	if errors.Is(err, control.ErrMalformed) || errors.Is(err, transport.ErrProtocol) {
		e.violate(link, err)
	}
}

// violate ends a connection whose server does not keep to the protocol. It is made again like one that was lost.
func (e *events) violate(link *transport.Conn, err error) {
	e.violation = fmt.Errorf("client: the server does not keep to the protocol: %w", err)
	link.CloseWith("malformed reliable message")
}
