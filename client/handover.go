package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/internal/streams"
	"github.com/uplink-rpc/uplink/session"
	"github.com/uplink-rpc/uplink/transport"
)

const (
	// bindWait is the time in which another server must bind the RPCs.
	bindWait = 10 * time.Second
	// worldWait is the time for which the client waits for worlds of another server, once all else
	// is ready: that may not offer them.
	worldWait = time.Second
	// switchWait is the time in which the client switches to another server, or stays; releaseWait
	// that in which its server must then release it.
	switchWait  = 20 * time.Second
	releaseWait = 5 * time.Second
	// partingWait is the time after which the client ends the session with a server from which it
	// has switched, if the server does not.
	partingWait = 15 * time.Second
	// switchStep is the time between two attempts to switch.
	switchStep = transport.DefaultTick
	// silentWait is the time in which another server must answer the first of maxHellos hellos.
	silentWait = 2 * time.Second
	maxHellos  = 3
	// helloBytes is the size of such a hello, with the headers of IP and UDP.
	helloBytes = 64 + 28
	// A handover that completes costs refunded less than one that fails.
	refunded = 7. / 8
	// failuresEvery is the minimum time between two log records of handovers that failed.
	failuresEvery = time.Minute
	// maxHeldBytes limits the reliable messages of another server before the switch.
	maxHeldBytes = 512 << 10
)

// handoverRate limits the handovers that a connection accepts, over all reconnections: 4 a minute
// that fail, or 32 that complete. A server that hands the client over more often violates the
// protocol: each handover lets the client send to addresses that the server chooses.
var handoverRate = ratelimit.Rate{PerSecond: 4. / 60, Burst: 4}

// failures counts the handovers that failed since the last log record about them.
type failures struct {
	count  int
	logged time.Time
}

// offered is a handover of a connection's server.
type offered struct {
	notice *message.HandoverNotice
	reader *streams.Reader // nil until the payload was received
	data   []byte
}

// parting is the end of the session with a former server.
type parting struct {
	since time.Time
	told  bool // the server has nothing left

	// Of a handover:
	to      *connection     // to the other server, which admits the client with the release; nil: it has
	reader  *streams.Reader // of the payload
	asked   bool            // for the release
	release []byte          // nil: it has not arrived
}

// handover handles a message Handover: a notice, or the release by a former server.
func (s *connection) handover(b []byte) error {
	if message.IsRelease(b) {
		p := &s.parting
		if s.role != former || !p.asked || p.release != nil {
			return fmt.Errorf("%w: a release without a switch", message.ErrMalformed)
		}
		p.release = bytes.Clone(b)
		s.part(time.Now())
		return nil
	}
	n, err := message.ParseHandover(b)
	if err != nil || s.role != playing {
		return err
	}
	if !s.notices.Take(time.Since(s.start), handoverRate, 1) {
		return fmt.Errorf("%w: more than %v handovers at once and %.0f per minute", session.ErrProtocol, handoverRate.Burst, 60*handoverRate.PerSecond)
	}
	s.received.notice = &n
	s.begin()
	return nil
}

// receivePayload handles the end of a stream with the payload of a handover. A standby keeps it
// until the switch, like the notice.
func (s *connection) receivePayload(r *streams.Reader, data []byte, err error) {
	if err != nil || s.received.reader != nil || s.role != playing && s.role != waiting {
		r.Finish(false)
		return
	}
	s.received.reader, s.received.data = r, data
	s.begin()
}

var errPayload = fmt.Errorf("client: %w: the payload is not that of the notice", session.ErrHandover)

// begin begins a handover once its notice and payload have arrived.
func (s *connection) begin() {
	o := s.received
	if o.notice == nil || o.reader == nil {
		return
	}
	s.received = offered{}
	if len(o.data) != o.notice.Size || o.notice.Size > 0 && sha256.Sum256(o.data) != o.notice.Hash {
		o.reader.Finish(false)
		s.mu.Lock()
		s.failed(o.notice, errPayload)
		s.mu.Unlock()
		s.report()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), switchWait)
	st := &standby{notice: *o.notice, reader: o.reader, cancel: cancel, until: time.Now().Add(switchWait)}
	own := s.own.RemoteAddr().Addr()
	s.seek(st, func() error { return s.follow(ctx, own, st, o.data) })
}

// failed records that a handover has failed. The caller holds c.mu.
func (c *Conn) failed(n *message.HandoverNotice, err error) {
	c.note(session.Event{State: c.state, Handover: session.HandoverFailed, Err: err})
	f := &c.failures
	f.count++
	if now := time.Now(); now.Sub(f.logged) >= failuresEvery {
		c.cfg.Logger.Warn("not handed over", "server", n.Servers[0].String(), "handovers", f.count, "error", err)
		*f = failures{logged: now}
	}
}

// seek connects to another server by dial, in place of an earlier one.
func (c *Conn) seek(st *standby, dial func() error) {
	c.mu.Lock()
	before := c.standby
	c.mu.Unlock()
	if before != nil {
		c.stay(before, errReplacedHandover)
	}
	c.mu.Lock()
	c.standby = st
	if st.reader != nil {
		c.note(session.Event{State: c.state, Handover: session.HandoverStarted})
	}
	c.work.Go(func() {
		if err := dial(); err != nil {
			c.stay(st, err)
		}
	})
	c.mu.Unlock()
	c.report()
}

var (
	errReplacedHandover = fmt.Errorf("client: %w: a newer one replaces it", session.ErrHandover)
	errNoCredit         = fmt.Errorf("client: %w: the client would send more to other servers than it has received", session.ErrHandover)
)

// follow connects to the server of a handover, of which the server at own tells. It tries each
// address that the client follows.
func (c *Conn) follow(ctx context.Context, own netip.Addr, st *standby, data []byte) error {
	var errs []error
	for _, addr := range st.notice.Servers {
		if !c.cfg.follows(own, addr.Addr()) {
			errs = append(errs, fmt.Errorf("client: %w: the address %v is not public: see Config.LocalHandovers", session.ErrHandover, addr))
			continue
		}
		cfg := c.cfg.transport(st.notice.Token)
		if cfg.Hellos = c.spendHellos(); cfg.Hellos == 0 {
			errs = append(errs, errNoCredit)
			break
		}
		dialing, cancel := context.WithTimeout(ctx, dialWait)
		silent := time.AfterFunc(silentWait, cancel)
		next := &connection{Conn: c, role: waiting, onAnswer: func() {
			if silent.Stop() { // it is the first answer
				c.refundHellos(cfg.Hellos)
			}
		}}
		link, err := transport.Dial(dialing, addr.String(), cfg, next)
		silent.Stop()
		cancel()
		if err == nil {
			return c.prepare(st, next, link, addr.String(), data)
		}
		if errs = append(errs, err); ctx.Err() != nil {
			break
		}
	}
	return attemptsFailed(errs)
}

// spendHellos returns the number of hellos that the client may send to a server that has not
// answered, and counts them: to all such servers it sends no more bytes than it has received.
func (c *Conn) spendHellos() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.stats.Transport
	if c.link != nil {
		t = t.Plus(c.link.Stats())
	}
	n := min((t.BytesReceived-min(t.BytesReceived, c.unanswered))/helloBytes, maxHellos)
	c.unanswered += n * helloBytes
	return int(n)
}

// refundHellos is called when the server has answered.
func (c *Conn) refundHellos(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unanswered -= uint64(n) * helloBytes
}

// prepare prepares to continue over a link that has opened.
func (c *Conn) prepare(st *standby, next *connection, link *transport.Conn, addr string, data []byte) error {
	c.receiving.Lock()
	defer c.receiving.Unlock()
	defer link.Wake(time.Now())
	c.mu.Lock()
	if c.standby != st || st.next != nil || isClosed(c.closed) || next.lost != nil {
		err := next.lost
		next.role = ignored
		if st.reader == nil {
			c.abandoned = time.Now()
		}
		c.mu.Unlock()
		link.CloseWith(session.ErrQuit, "")
		return err
	}
	st.next, st.addr, st.connected, st.payload = next, addr, time.Now(), len(data) == 0
	for _, b := range c.bindings {
		b.prepare(link)
	}
	orphan := c.link == nil
	c.mu.Unlock()
	if len(data) > 0 {
		_, err := next.streams.SendReserved(time.Now(), message.HandoverStream, data, func(err error) {
			if err != nil {
				c.stay(st, err)
				return
			}
			c.mu.Lock()
			st.payload = true
			c.mu.Unlock()
			link.Wake(time.Now())
		})
		if err != nil {
			c.stay(st, err)
			return nil
		}
	}
	if orphan { // there is nothing to wait for
		c.switchTo(st, time.Now())
	}
	return nil
}

// stay abandons a standby. If the session with the current server has ended, the client reconnects.
func (c *Conn) stay(st *standby, err error) {
	c.mu.Lock()
	if c.standby != st {
		c.mu.Unlock()
		return
	}
	c.standby = nil
	st.cancel()
	for _, b := range c.bindings {
		b.abandon()
	}
	if st.reader == nil {
		c.abandoned = time.Now() // its session may still replace the current one
	} else {
		c.failed(&st.notice, err)
	}
	if c.link == nil && !isClosed(c.closed) && c.gone == nil {
		c.startReconnecting(err)
	}
	c.mu.Unlock()
	c.worlds.Abandon()
	if st.next != nil {
		st.next.role = ignored
		st.next.own.CloseWith(session.ErrQuit, "")
	}
	if st.reader != nil {
		st.reader.Finish(false)
	}
	c.report()
}

var errLate = fmt.Errorf("client: %w: it takes more than %v", session.ErrHandover, switchWait)

var errNotBound = fmt.Errorf("client: %w: the other server did not bind the RPCs in time", session.ErrHandover)

// trySwitch switches to the standby if the client is ready there, and the tick has come.
func (c *Conn) trySwitch(now time.Time) {
	c.mu.Lock()
	st := c.standby
	if st == nil || st.next == nil || c.link == nil {
		c.mu.Unlock()
		return
	}
	answers := st.reader == nil && c.link.Silence(now) < maxSilence
	ready := st.payload
	for _, b := range c.bindings {
		ready = b.prepared(st.reader == nil) && ready
	}
	if ready && st.ready.IsZero() {
		st.ready = now
	}
	since := st.ready
	c.mu.Unlock()
	switch {
	case answers:
		c.cfg.Logger.Info("the server answers again", "server", c.Server())
		c.stay(st, nil)
	case !ready && now.Sub(st.connected) >= bindWait:
		c.stay(st, errNotBound)
	case st.reader != nil && !now.Before(st.until):
		c.stay(st, errLate)
	case ready && (st.reader == nil || c.worlds.Prepared() || now.Sub(since) >= worldWait) && c.reached(st):
		c.switchTo(st, now)
	default:
		st.next.own.Wake(now.Add(switchStep))
	}
}

// reached reports whether the tick of a handover has come.
func (c *Conn) reached(st *standby) bool {
	n := &st.notice
	return st.reader == nil || n.Stream == message.NoStream || c.worlds.Reached(n.Stream, n.Tick)
}

// switchTo continues at the standby.
func (c *Conn) switchTo(st *standby, now time.Time) {
	next := st.next
	c.mu.Lock()
	before := c.active
	left := c.link
	c.standby, c.addr, c.attempt, c.wait, c.leaving = nil, st.addr, 0, 0, false
	c.link, c.active, c.streams = next.own, next, next.streams
	st.cancel()
	e := session.Event{State: session.Connected, New: true}
	if st.reader != nil {
		e.Handover = session.HandoverCompleted
	}
	c.note(e)
	c.congestion.relink()
	for _, b := range c.bindings {
		b.switchOver(st.reader == nil) // part calls it again
	}
	if !before.ended {
		c.stats.Transport = c.stats.Transport.Plus(left.Stats())
		if c.former == nil {
			c.former = map[*connection]struct{}{}
		}
		c.former[before] = struct{}{}
	}
	c.mu.Unlock()
	c.cfg.Logger.Info("continues at another server", "server", st.addr)
	if left != nil {
		_ = c.out.flush(left) // nothing can be done about an error
	}
	before.role, next.role = former, playing
	if st.reader != nil {
		c.notices.Refund(refunded)
	}
	before.parting = parting{since: now}
	if st.reader != nil {
		before.parting.to, before.parting.reader = next, st.reader
	}
	if st.reader == nil {
		before.own.CloseWith(session.ErrQuit, "")
	}
	c.worlds.Switch(now)
	before.own.Wake(now)
	next.own.Wake(now)
	c.report()
}

// part ends the session with a former server, when nothing is on its way in either direction.
func (s *connection) part(now time.Time) {
	for _, b := range s.all() {
		if b.uses(s.own) && !b.switchOver(false) {
			s.own.Wake(now.Add(switchStep))
			return
		}
	}
	p := &s.parting
	switch {
	case p.to == nil:
	case p.to.role != playing: // the client plays elsewhere
		p.to = nil
		p.reader.Finish(true)
	case !p.asked:
		p.asked = s.own.SendReliable(message.AppendSwitch(nil)) == nil // behind all that was sent here
	default:
		s.passRelease()
	}
	if p.to != nil && now.Sub(p.since) >= releaseWait {
		s.unreleased(errUnreleased)
	}
	s.mu.Lock()
	requests := s.requests.over(s.own)
	s.mu.Unlock()
	if p.told && s.own.Unacked() == 0 && requests == 0 && !s.streams.Busy() || now.Sub(p.since) >= partingWait {
		s.own.CloseWith(session.ErrQuit, "")
	}
	s.own.Wake(now.Add(switchStep))
}

var errUnreleased = fmt.Errorf("client: %w: the former server did not release the client in time", session.ErrHandover)

// passRelease passes the release, if it has arrived, to the other server, which then lets the
// client play.
func (s *connection) passRelease() {
	p := &s.parting
	if p.to == nil || p.release == nil {
		return
	}
	b := append([]byte{byte(message.Handover)}, p.release...)
	if err := p.to.own.SendReliable(b); !errors.Is(err, session.ErrBacklog) {
		p.to = nil
		p.reader.Finish(true)
	}
}

// unreleased ends the session with the other server, which does not let the client play. The client
// reconnects.
func (s *connection) unreleased(err error) {
	to := s.parting.to
	s.parting.to = nil
	s.mu.Lock()
	to.cause = err
	s.mu.Unlock()
	to.own.CloseWith(session.ErrQuit, "")
}

// hold keeps a reliable message of the standby until the switch.
func (s *connection) hold(b []byte) error {
	if s.heldSize += len(b) + messageOverhead; s.heldSize > maxHeldBytes {
		return fmt.Errorf("%w: more than %d bytes of messages before the switch", session.ErrProtocol, maxHeldBytes)
	}
	s.held = append(s.held, bytes.Clone(b))
	return nil
}

// messageOverhead is the memory of a held message besides its bytes.
const messageOverhead = 64

// uses reports whether a connection other than the current one handles datagrams of a type.
func (s *connection) uses(t message.Type) bool {
	switch s.role {
	case waiting:
		return t == message.Bound || t == message.Down || t == message.DownFragment || t == message.WithAcks || t == message.WithSlack
	case former:
		return t == message.Frame || t == message.Message || t == message.Leaving
	default:
		return false
	}
}
