package client

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
)

var _ endpoint.Handler = (*link)(nil)

// Datagram handles an unreliable message: acks, answers to requests to bind, replication streams,
// calls, and messages for the game. The game gets calls and messages only from servers to which the
// client has switched.
func (l *link) Datagram(_ *endpoint.Conn, b []byte, at time.Time) {
	l.receiving.Lock()
	defer l.receiving.Unlock()
	t, body, err := message.Split(b)
	switch {
	case err != nil:
	case t == message.WithAcks || t == message.WithSlack:
		err = l.withAcks(t, body, at)
	case t == message.Bound:
		err = l.bound(body)
	case t == message.Down || t == message.DownFragment:
		err = l.worlds.HandleDatagram(t, body, at)
	case !l.used:
	case t == message.Acks:
		l.acksAlone()
		err = l.acks(body)
	case t == message.Slack:
		l.acksAlone()
		err = l.slack(body, at)
	case t == message.Frame:
		err = l.call(b, l.own.Number())
	case t == message.Leaving:
		l.shutDown()
	case t != message.Message:
		err = message.ErrMalformed
	case l.cfg.Hooks.OnUnreliable != nil:
		l.cfg.Hooks.OnUnreliable(body)
	}
	if err != nil {
		l.count(&l.stats.Malformed, 1)
	}
}

// acksAlone counts a datagram that contains only acks.
func (l *link) acksAlone() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.Acks.Messages++
	l.stats.Acks.AEADBytes += uint64(l.tag)
}

// acks applies consecutive acks. After an invalid ack, the acks of other RPCs are still applied. It
// returns the last error.
func (l *link) acks(b []byte) (bad error) {
	l.count(&l.stats.Acks.Bytes, 1+len(b))
	for len(b) > 0 {
		a, rest, err := rpcdelta.ParseAck(b)
		if err != nil {
			return err
		}
		if target := l.sender(int(a.RPC)); target == nil {
			bad = fmt.Errorf("%w: an ack of an RPC that is not bound", message.ErrMalformed)
		} else if err := target.ack(a); err != nil {
			bad = err
		}
		b = rest
	}
	return bad
}

// slack applies reports about jitter buffers and the acks after them.
func (l *link) slack(b []byte, now time.Time) error {
	var buf [message.MaxBuffered]message.Buffered
	reports, acks, err := message.ParseSlack(buf[:0], b)
	if err != nil {
		return err
	}
	for i := range reports {
		if target := l.sender(int(reports[i].RPC)); target != nil {
			target.report(now, &reports[i])
		}
	}
	l.count(&l.stats.Acks.Bytes, len(b)-len(acks))
	return l.acks(acks)
}

// withAcks applies piggybacked acks, and handles the message that follows them. It returns the last
// error.
func (l *link) withAcks(t message.Type, b []byte, now time.Time) error {
	acks, msg, err := message.ParseWithAcks(b)
	if err != nil {
		return err
	}
	l.count(&l.stats.Acks.Bytes, 1) // the length byte
	if t == message.WithSlack {
		err = l.slack(acks, now)
	} else {
		err = l.acks(acks)
	}
	t, body, bad := message.Split(msg)
	if bad == nil {
		bad = l.worlds.HandleDatagram(t, body, now)
	}
	return cmp.Or(bad, err)
}

// bound handles the answer to a request to bind.
func (l *link) bound(b []byte) error {
	a, err := message.ParseBindAnswer(b)
	if err != nil {
		return err
	}
	target := l.sender(int(a.RPC))
	if target == nil {
		return fmt.Errorf("%w: an answer for an RPC that is not bound", message.ErrMalformed)
	}
	target.handleAnswer(&a)
	l.own.Wake(time.Now()) // Tick reports a mismatch, and switches when all RPCs are bound
	return nil
}

// offerRate limits the offers of worlds that a connection accepts, over all reconnections. Each
// offer of a subscribed world creates a decoder, and is logged if it is refused.
var offerRate = ratelimit.Rate{PerSecond: 1, Burst: 4 * replication.MaxReplicas}

// Message handles a message of the reliable channel: the game's own messages, and the offers and
// initial states of replication streams.
func (l *link) Message(_ *endpoint.Conn, b []byte, at time.Time) {
	l.receiving.Lock()
	defer l.receiving.Unlock()
	l.deliverHeld(at)
	l.message(b, at)
}

// deliverHeld handles the messages that were held until the switch to this server.
func (l *link) deliverHeld(now time.Time) {
	if !l.used || len(l.held) == 0 {
		return
	}
	held := l.held
	l.held = nil
	for _, b := range held {
		l.message(b, now)
	}
}

func (l *link) message(b []byte, at time.Time) {
	t, body, err := message.Split(b)
	switch {
	case err != nil:
	case !l.used && (t == message.Frame || t == message.Message || t == message.Handover):
		err = l.hold(b)
	case t == message.Offer && !l.offers.Take(at.Sub(l.start), offerRate, 1):
		err = fmt.Errorf("%w: more than %v offers of worlds at once and %v per second", transport.ErrProtocol, offerRate.Burst, offerRate.PerSecond)
	case isWorld(t):
		err = l.worlds.HandleMessage(t, body, at)
	case t == message.Bind:
		err = l.bindCall(body)
	case t == message.Frame:
		err = l.reliableCall(b)
	case t == message.Request:
		err = l.answered(body)
	case t == message.Handover:
		err = l.handover(l, body)
	case t != message.Message || len(body) > MaxMessage:
		err = fmt.Errorf("%w: type %#x with %d bytes on the reliable channel", message.ErrMalformed, byte(t), len(body))
	case l.cfg.OnMessage != nil:
		l.cfg.OnMessage(body)
	}
	if err != nil {
		l.count(&l.stats.Malformed, 1)
	}
	if errors.Is(err, message.ErrMalformed) || errors.Is(err, transport.ErrProtocol) {
		l.violated(err)
	}
}

// isWorld reports whether reliable messages of a type are about worlds.
func isWorld(t message.Type) bool {
	return t == message.Offer || t == message.Piece || t == message.Stop || t == message.GameMessage
}

// answered handles the answer to a request. The client may have canceled the request.
func (l *link) answered(b []byte) error {
	k, id, body, err := message.ParseRequest(b)
	if err != nil {
		return err
	}
	a := answer{message: bytes.Clone(body)}
	switch k {
	case message.Answer:
	case message.Refusal:
		a.err = &RequestError{Reason: string(body)}
	case message.Unhandled:
		a.err = fmt.Errorf("%w: ds.Config.Hooks.OnRequest is not set", transport.ErrUnhandled)
	default:
		return fmt.Errorf("%w: a request to a client", message.ErrMalformed)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if got, ok := l.requests[id]; ok {
		got <- a
		delete(l.requests, id)
	}
	return nil
}

// hold stores a reliable message until the switch to this server.
func (l *link) hold(b []byte) error {
	if l.heldSize += len(b) + messageOverhead; l.heldSize > maxHeldBytes {
		return fmt.Errorf("%w: more than %d bytes of messages before the switch", transport.ErrProtocol, maxHeldBytes)
	}
	l.held = append(l.held, bytes.Clone(b))
	return nil
}

// messageOverhead is the memory of a held message besides its bytes.
const messageOverhead = 64
