package client

import (
	"errors"
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
)

var _ transport.Handler = (*session)(nil)

// Datagram handles an unreliable message: acks, answers to bind, and replication streams.
func (s *session) Datagram(_ *transport.Conn, b []byte, at time.Time) {
	t, body, err := control.Split(b)
	switch {
	case err != nil:
	case t == control.Acks:
		err = s.acks(body)
	case t == control.Slack:
		err = s.slack(body, at)
	case t == control.Bound:
		err = s.bound(body)
	case t == control.Down || t == control.DownFragment:
		err = s.worlds.HandleDatagram(t, body, at)
	case t == control.Leaving:
		s.leave()
	default:
		err = control.ErrMalformed
	}
	if err != nil {
		s.count(&s.stats.Malformed, 1)
	}
}

// acks applies consecutive acks. An invalid one does not keep those of other RPCs after it from
// being used. It returns the last error.
func (c *Conn) acks(b []byte) (bad error) {
	c.count(&c.stats.AckBytes, 1+len(b))
	for len(b) > 0 {
		a, rest, err := rpcdelta.ParseAck(b)
		if err != nil {
			return err
		}
		if target := c.binding(int(a.RPC)); target == nil {
			bad = fmt.Errorf("%w: an ack of an RPC that is not bound", control.ErrMalformed)
		} else if err := target.ack(a); err != nil {
			bad = err
		}
		b = rest
	}
	return bad
}

// slack applies reports about jitter buffers, and the acks that follow them.
func (c *Conn) slack(b []byte, now time.Time) error {
	var buf [control.MaxBuffered]control.Buffered
	reports, acks, err := control.ParseSlack(buf[:0], b)
	if err != nil {
		return err
	}
	for i := range reports {
		if target := c.binding(int(reports[i].RPC)); target != nil {
			target.report(now, &reports[i])
		}
	}
	c.count(&c.stats.AckBytes, len(b)-len(acks))
	return c.acks(acks)
}

func (c *Conn) bound(b []byte) error {
	a, err := control.ParseBindAnswer(b)
	if err != nil {
		return err
	}
	target := c.binding(int(a.RPC))
	if target == nil {
		return fmt.Errorf("%w: an answer for an RPC that is not bound", control.ErrMalformed)
	}
	target.answered(&a)
	return nil
}

// count increases a counter of c.stats.
func (c *Conn) count(counter *uint64, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*counter += uint64(n)
}

// offerRate limits the offers of worlds that a connection accepts, over all reconnections. Each
// offer of a subscribed world creates a decoder, and is logged if it is refused.
var offerRate = ratelimit.Rate{PerSecond: 1, Burst: 4 * replication.MaxStreams}

// Message handles a message of the reliable channel: the game's own messages, and the offers and
// initial states of replication streams.
func (s *session) Message(link *transport.Conn, b []byte, at time.Time) {
	t, body, err := control.Split(b)
	switch {
	case err != nil:
	case t == control.Offer && !s.offers.Take(at.Sub(s.start), offerRate, 1):
		err = fmt.Errorf("%w: more than %v offers of worlds at once and %v per second", transport.ErrProtocol, offerRate.Burst, offerRate.PerSecond)
	case t == control.Offer || t == control.Piece || t == control.Stop:
		err = s.worlds.HandleMessage(link, t, body, at)
	case t != control.Message || len(body) > MaxMessage:
		err = fmt.Errorf("%w: type %#x with %d bytes on the reliable channel", control.ErrMalformed, byte(t), len(body))
	case s.cfg.OnMessage != nil:
		s.cfg.OnMessage(body)
	}
	if err != nil {
		s.count(&s.stats.Malformed, 1)
	}
	if errors.Is(err, control.ErrMalformed) || errors.Is(err, transport.ErrProtocol) {
		s.violation = fmt.Errorf("client: the server violates the protocol: %w", err)
		link.CloseWith("malformed reliable message") // the client reconnects
	}
}
