package client

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/session"
	"github.com/uplink-rpc/uplink/transport"
)

var _ transport.Handler = (*connection)(nil)

// Datagram handles an unreliable message: acks, answers to bind, and replication streams.
func (s *connection) Datagram(link *transport.Conn, b []byte, at time.Time) {
	s.receiving.Lock()
	defer s.receiving.Unlock()
	t, body, err := message.Split(b)
	if s.role != playing && !s.uses(t) {
		return
	}
	switch {
	case err != nil:
	case t == message.Acks:
		s.acksAlone()
		err = s.acks(link, body, at)
	case t == message.Frame:
		err = s.call(b, link.Number())
	case t == message.Slack:
		s.acksAlone()
		err = s.slack(link, body, at)
	case t == message.WithAcks || t == message.WithSlack:
		err = s.withAcks(t, body, at)
	case t == message.Bound:
		err = s.bound(link, body)
	case t == message.Down || t == message.DownFragment:
		err = s.worlds.HandleDatagram(link, t, body, at)
	case t == message.Leaving:
		s.leave()
	case t == message.Message:
		if s.cfg.OnUnreliable != nil {
			s.cfg.OnUnreliable(body)
		}
	default:
		err = message.ErrMalformed
	}
	if err != nil {
		s.count(&s.stats.Malformed, 1)
	}
}

// acksAlone counts a datagram of acks alone.
func (s *connection) acksAlone() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.AckMessages++
	s.stats.AckAEADBytes += uint64(s.tag)
}

// acks applies consecutive acks. An invalid one does not keep those of other RPCs after it from
// being used. It returns the last error.
func (c *Conn) acks(link *transport.Conn, b []byte, at time.Time) (bad error) {
	c.count(&c.stats.AckBytes, 1+len(b))
	for len(b) > 0 {
		a, rest, err := rpcdelta.ParseAck(b)
		if err != nil {
			return err
		}
		if target := c.binding(int(a.RPC)); target == nil {
			bad = fmt.Errorf("%w: an ack of an RPC that is not bound", message.ErrMalformed)
		} else if !target.uses(link) {
			bad = nil // of a server to which the client does not send, or not any more
		} else if rtt, err := target.ack(a, at); err != nil {
			bad = err
		} else if rtt != 0 {
			c.measure(rtt)
		}
		b = rest
	}
	return bad
}

// measure processes the round-trip time of an RPC's payload.
func (c *Conn) measure(rtt time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.congestion.delay.Add(rtt)
}

// slack applies reports about jitter buffers, and the acks that follow them.
func (c *Conn) slack(link *transport.Conn, b []byte, now time.Time) error {
	var buf [message.MaxBuffered]message.Buffered
	reports, acks, err := message.ParseSlack(buf[:0], b)
	if err != nil {
		return err
	}
	for i := range reports {
		if target := c.binding(int(reports[i].RPC)); target != nil && target.uses(link) {
			target.report(now, &reports[i])
		}
	}
	c.count(&c.stats.AckBytes, len(b)-len(acks))
	return c.acks(link, acks, now)
}

// withAcks applies piggybacked acks, and handles the message that follows them. It returns the last
// error.
func (s *connection) withAcks(t message.Type, b []byte, now time.Time) error {
	acks, msg, err := message.ParseWithAcks(b)
	if err != nil {
		return err
	}
	s.count(&s.stats.AckBytes, 1) // the length
	if t == message.WithSlack {
		err = s.slack(s.own, acks, now)
	} else {
		err = s.acks(s.own, acks, now)
	}
	t, body, bad := message.Split(msg)
	if bad == nil {
		bad = s.worlds.HandleDatagram(s.own, t, body, now)
	}
	return cmp.Or(bad, err)
}

func (c *Conn) bound(link *transport.Conn, b []byte) error {
	a, err := message.ParseBindAnswer(b)
	if err != nil {
		return err
	}
	target := c.binding(int(a.RPC))
	if target == nil {
		return fmt.Errorf("%w: an answer for an RPC that is not bound", message.ErrMalformed)
	}
	target.answeredBy(link, &a)
	link.Wake(time.Now()) // Tick reports a mismatch
	return nil
}

// offerRate limits the offers of worlds that a connection accepts, over all reconnections. Each
// offer of a subscribed world creates a decoder, and is logged if it is refused.
var offerRate = ratelimit.Rate{PerSecond: 1, Burst: 4 * replication.MaxStreams}

// Message handles a message of the reliable channel: the game's own messages, and the offers and
// initial states of replication streams.
func (s *connection) Message(link *transport.Conn, b []byte, at time.Time) {
	s.receiving.Lock()
	defer s.receiving.Unlock()
	s.deliverHeld(at)
	s.message(link, b, at)
}

// deliverHeld handles the messages that were held until the switch to this server.
func (s *connection) deliverHeld(now time.Time) {
	if s.role != playing || len(s.held) == 0 {
		return
	}
	held := s.held
	s.held = nil
	for _, b := range held {
		s.message(s.own, b, now)
	}
}

func (s *connection) message(link *transport.Conn, b []byte, at time.Time) {
	t, body, err := message.Split(b)
	switch {
	case err != nil:
	case s.role == ignored || s.role == former && isWorld(t):
	case s.role == waiting && (t == message.Frame || t == message.Message || t == message.Handover):
		err = s.hold(b)
	case t == message.Offer && !s.offers.Take(at.Sub(s.start), offerRate, 1):
		err = fmt.Errorf("%w: more than %v offers of worlds at once and %v per second", session.ErrProtocol, offerRate.Burst, offerRate.PerSecond)
	case isWorld(t):
		err = s.worlds.HandleMessage(link, t, body, at)
	case t == message.Bind:
		err = s.bindCall(link, body)
	case t == message.Frame:
		err = s.reliableCall(b)
	case t == message.Request:
		err = s.answered(link, body)
	case t == message.Handover:
		err = s.handover(body)
	case t != message.Message || len(body) > MaxMessage:
		err = fmt.Errorf("%w: type %#x with %d bytes on the reliable channel", message.ErrMalformed, byte(t), len(body))
	case s.cfg.OnMessage != nil:
		s.cfg.OnMessage(body)
	}
	if err != nil {
		s.count(&s.stats.Malformed, 1)
	}
	if errors.Is(err, message.ErrMalformed) || errors.Is(err, session.ErrProtocol) {
		s.violated(link, err)
	}
}

// isWorld reports whether reliable messages of a type are about worlds.
func isWorld(t message.Type) bool {
	return t == message.Offer || t == message.Piece || t == message.Stop || t == message.GameMessage
}

// violated ends the session because of a reliable message that no server sends.
func (s *connection) violated(link *transport.Conn, err error) {
	if !errors.Is(err, session.ErrProtocol) {
		err = fmt.Errorf("%w: %w", session.ErrProtocol, err)
	}
	s.mu.Lock()
	if s.cause == nil {
		s.cause = err
	}
	s.mu.Unlock()
	link.CloseWith(session.ErrProtocol, "malformed reliable message") // the client reconnects
}

// Tick repeats requests, sends what had to wait, and schedules the next Tick.
func (s *connection) Tick(now time.Time) {
	s.receiving.Lock()
	defer s.receiving.Unlock()
	s.deliverHeld(now)
	switch s.role {
	case playing:
		s.tick(now)
	case waiting:
		for _, b := range s.all() {
			b.tick(now)
		}
		s.worlds.Tick(now)
	case former:
		s.part(now)
	case ignored:
		return
	}
	s.ackCalls(now)
	s.trySwitch(now)
}

func (s *connection) tick(now time.Time) {
	quality, measured := s.regulate(now)
	s.checkOffers(now)
	s.noteMismatches()
	if measured {
		s.noteTickRates()
	}
	s.report()
	if measured && s.cfg.OnQuality != nil {
		s.cfg.OnQuality(quality)
	}
	for _, b := range s.all() {
		b.tick(now)
	}
	s.flushDue(now)
	s.worlds.Tick(now)
	s.continueLeaving(now)
	s.listen(now)
}

// flushDue sends the collected payloads once per Config.Tick.
func (s *connection) flushDue(now time.Time) {
	every := s.cfg.Tick
	if every == 0 {
		return
	}
	if !now.Before(s.nextFlush) {
		s.nextFlush = s.nextFlush.Add(every)
		if !now.Before(s.nextFlush) {
			s.nextFlush = now.Add(every)
		}
		_ = s.Flush() // the next Send returns the error
	}
	s.own.Wake(s.nextFlush)
}

// regulate measures the bit rates and the quality of the path, and applies the limits of
// configuration and path, once per rateWindow. It reports whether that was due.
func (c *Conn) regulate(now time.Time) (q session.Quality, due bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link == nil {
		return q, false // install schedules the next Tick
	}
	if due = now.Sub(c.meter.start) >= rateWindow; due {
		c.noteSilence(now)
		var redundancy int
		var delivery rpcdelta.DeliveryStats
		for _, b := range c.bindings {
			redundancy = max(redundancy, b.addDelivery(&delivery))
		}
		own := c.link.Stats()
		q = session.Quality{
			RTT: own.RTT, PathSize: own.MaxDatagram,
			Loss: c.loss.step(c.link, own.Lost, own.DatagramsReceived-own.Dropped.Total()),
		}
		t := c.stats.Transport.Plus(own)
		elapsed, sent := c.meter.step(now, trafficOf(&t, c.link.Overhead()))
		reduced := c.budget.level > 0 && c.budget.limit() == c.budget.path
		c.congestion.step(now, float64(sent.limited)/elapsed.Seconds(), delivery, reduced)
		c.budget.path = c.congestion.limit
		if c.budget.step(elapsed, sent, redundancy) {
			for _, b := range c.bindings {
				b.setLimits(c.budget.limits())
			}
		}
	}
	c.link.Wake(c.meter.start.Add(rateWindow))
	return q, due
}

// leave handles the server's announcement that it is about to shut down. The client then sends the
// held frames, but nothing new, waits for the acks of everything that it sent reliably, for the
// answers to its requests and the end of its streams, and ends the session. It reconnects as after
// a loss.
func (s *connection) leave() {
	if s.role == former {
		s.parting.told = true
		s.own.Wake(time.Now())
		return
	}
	s.mu.Lock()
	announced := s.leaving
	s.leaving = true
	s.mu.Unlock()
	if !announced {
		s.cfg.Logger.Info("the server shuts down", "server", s.addr)
	}
	s.own.Wake(time.Now())
}

// continueLeaving ends the session after leave once nothing is left to wait for.
func (c *Conn) continueLeaving(now time.Time) {
	c.mu.Lock()
	link, leaving := c.link, c.leaving
	ready := link != nil && c.requests.over(link) == 0 && !c.streams.Busy()
	c.mu.Unlock()
	if !leaving || link == nil {
		return
	}
	for _, b := range c.all() {
		ready = b.leave() && ready
	}
	_ = c.out.flush(link) // nothing can be done about an error
	if !ready || link.Unacked() > 0 {
		link.Wake(now.Add(transport.DefaultTick))
		return
	}
	link.CloseWith(session.ErrShutdown, "")
}
