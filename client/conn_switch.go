package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/streams"
	"github.com/uplink-rpc/uplink/transport"
)

// A client continues at another server because its server hands it over, or does not answer, or
// because the session was lost and it reconnects. All three make a link to that server; switchTo
// makes it the current one.
//
//	handover, begin  a move begins: it dials servers in a goroutine of its own
//	prepare          the link that has opened is the next one: RPCs are bound and worlds received
//	trySwitch        is called with each Tick until all is ready
//	switchTo         the next link is the current one; the former is an old one
//	part             ends the session with the old server when no data is in flight
//	abandon          drops the move and its link; the client stays, or reconnects

const (
	// bindWait is the time in which another server must bind the RPCs.
	bindWait = 10 * time.Second
	// worldWait is the maximum time to wait for a world of another server once all else is ready,
	// if no data of the world arrives. The server may not offer it.
	worldWait = time.Second
	// switchWait is the time within which the client switches to another server; otherwise it
	// stays. releaseWait is the time within which its former server must then release it.
	switchWait  = 20 * time.Second
	releaseWait = 5 * time.Second
	// partingWait is the time after which the client ends the session with a server from which it
	// has switched, if the server does not.
	partingWait = 15 * time.Second
	// switchStep is the time between two attempts to switch.
	switchStep = endpoint.DefaultTick
	// silentWait is the time in which another server must answer the first of maxHellos hellos.
	silentWait = 2 * time.Second
	maxHellos  = 3
	// helloBytes is the size of a hello without a message, with the headers of IP and UDP.
	helloBytes = 64 + 28
	// refunded is the part of a handover's cost in handoverRate that is refunded when the handover
	// completes.
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

// move is the attempt to continue at another server while the client plays. Its fields do not
// change, except those that Conn.mu guards.
type move struct {
	notice message.HandoverNotice // notice of the handover; zero in a search
	reader *streams.Reader        // reader of the payload; nil in a search
	until  time.Time              // time at which the handover fails
	cancel context.CancelFunc     // ends dialing

	// Guarded by Conn.mu:
	connected time.Time // time at which Conn.next was connected
	payload   bool      // the other server has the payload
	ready     time.Time // time at which everything except worlds was ready; zero until then
}

// searches reports whether the client moves because its server does not answer.
func (m *move) searches() bool { return m.reader == nil }

// offered is a handover that a link's server has announced.
type offered struct {
	notice *message.HandoverNotice
	reader *streams.Reader // nil until the payload was received
	data   []byte
}

// parting is the state of the end of the session with an old server.
type parting struct {
	since time.Time

	// For a handover:
	to      *link           // link to the other server while that still needs the release; otherwise nil
	reader  *streams.Reader // reader of the payload
	asked   bool            // the release was requested
	release []byte          // release; nil until it is received
}

// handover handles a message Handover: a notice, or the release by an old server.
func (c *Conn) handover(l *link, b []byte) error {
	if message.IsRelease(b) {
		p := &l.parting
		if !p.asked || p.release != nil {
			return fmt.Errorf("%w: a release without a switch", message.ErrMalformed)
		}
		p.release = bytes.Clone(b)
		c.part(l, time.Now())
		return nil
	}
	n, err := message.ParseHandover(b)
	if err != nil || !l.isCurrent() {
		return err
	}
	if !c.notices.Take(time.Since(c.start), handoverRate, 1) {
		return fmt.Errorf("%w: more than %v handovers at once and %.0f per minute", transport.ErrProtocol, handoverRate.Burst, 60*handoverRate.PerSecond)
	}
	l.offer.notice = &n
	c.follow(l)
	return nil
}

// receivePayload handles the end of a stream with the payload of a handover. The payload is stored
// until the notice is handled, which a server may send before the client has switched to it.
func (c *Conn) receivePayload(l *link, r *streams.Reader, data []byte, err error) {
	if err != nil || l.offer.reader != nil || l.used && !l.isCurrent() {
		r.Finish(false)
		return
	}
	l.offer.reader, l.offer.data = r, data
	c.follow(l)
}

var errPayload = fmt.Errorf("client: %w: the payload is not that of the notice", transport.ErrHandover)

// follow begins the announced handover if both its notice and its payload have arrived.
func (c *Conn) follow(l *link) {
	o := l.offer
	if o.notice == nil || o.reader == nil {
		return
	}
	l.offer = offered{}
	if len(o.data) != o.notice.Size || o.notice.Size > 0 && sha256.Sum256(o.data) != o.notice.Hash {
		o.reader.Finish(false)
		c.mu.Lock()
		c.failed(o.notice, errPayload)
		c.mu.Unlock()
		c.report()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), switchWait)
	m := &move{notice: *o.notice, reader: o.reader, cancel: cancel, until: time.Now().Add(switchWait)}
	own := l.own.RemoteAddr().Addr()
	c.begin(m, func() error { return c.dialServers(ctx, own, m, o.data) })
}

// failed records that a handover has failed. The caller holds c.mu.
func (c *Conn) failed(n *message.HandoverNotice, err error) {
	c.note(Event{State: c.state, Handover: HandoverFailed, Err: err})
	f := &c.failures
	f.count++
	if now := time.Now(); now.Sub(f.logged) >= failuresEvery {
		c.cfg.Logger.Warn("not handed over", "server", n.Servers[0].String(), "handovers", f.count, "error", err)
		*f = failures{logged: now}
	}
}

// begin begins a move and cancels an earlier one. dial connects to another server.
func (c *Conn) begin(m *move, dial func() error) {
	c.mu.Lock()
	before := c.move
	c.mu.Unlock()
	if before != nil {
		c.abandon(before, errReplacedHandover)
	}
	c.mu.Lock()
	c.move = m
	if !m.searches() {
		c.note(Event{State: c.state, Handover: HandoverStarted})
	}
	c.work.Go(func() {
		if err := dial(); err != nil {
			c.abandon(m, err)
		}
	})
	c.mu.Unlock()
	c.report()
}

var (
	errReplacedHandover = fmt.Errorf("client: %w: a newer one replaces it", transport.ErrHandover)
	errNoCredit         = fmt.Errorf("client: %w: the client would send more to other servers than it has received", transport.ErrHandover)
)

// dialServers connects to the server of a handover that the server at own announced. It tries each
// address that the client may follow.
func (c *Conn) dialServers(ctx context.Context, own netip.Addr, m *move, data []byte) error {
	var errs []error
	for _, addr := range m.notice.Servers {
		if !c.cfg.follows(own, addr.Addr()) {
			errs = append(errs, fmt.Errorf("client: %w: the address %v is not public: see Config.Transport.LocalHandovers", transport.ErrHandover, addr))
			continue
		}
		cfg := c.cfg.transport(m.notice.Token)
		if cfg.Hellos = c.spendHellos(); cfg.Hellos == 0 {
			errs = append(errs, errNoCredit)
			break
		}
		dialing, cancel := context.WithTimeout(ctx, dialWait)
		silent := time.AfterFunc(silentWait, cancel)
		next := newLink(c, addr.String())
		next.onAnswer = func() {
			if silent.Stop() { // the first answer
				c.refundHellos(cfg.Hellos)
			}
		}
		_, err := endpoint.Dial(dialing, next.addr, cfg, next)
		silent.Stop()
		cancel()
		if err == nil {
			return c.prepare(m, next, data)
		}
		if errs = append(errs, err); ctx.Err() != nil {
			break
		}
	}
	return attemptsFailed(errs)
}

// spendHellos returns the number of hellos that the client may send to a server that has not
// answered, and counts them. The bytes sent to all such servers never exceed the received bytes.
func (c *Conn) spendHellos() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.stats.Transport
	if c.current != nil {
		t = endpoint.Sum(t, c.current.own.Stats())
	}
	n := min((t.BytesReceived-min(t.BytesReceived, c.unanswered))/helloBytes, maxHellos)
	c.unanswered += n * helloBytes
	return int(n)
}

// refundHellos subtracts n hellos from that count when the server has answered.
func (c *Conn) refundHellos(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unanswered -= uint64(n) * helloBytes
}

// prepare makes the newly opened link next the next link of the connection.
func (c *Conn) prepare(m *move, next *link, data []byte) error {
	c.receiving.Lock()
	defer c.receiving.Unlock()
	defer next.own.Wake(time.Now())
	c.mu.Lock()
	if c.move != m || c.next != nil || isClosed(c.closed) || next.lost != nil {
		err := next.lost
		if m.searches() {
			c.abandoned = time.Now()
		}
		c.mu.Unlock()
		next.own.CloseWith(transport.ErrQuit, "")
		return err
	}
	c.setNext(next)
	m.connected, m.payload = time.Now(), len(data) == 0
	orphan := c.current == nil
	c.mu.Unlock()
	if len(data) > 0 {
		_, err := next.streams.SendReserved(time.Now(), message.HandoverStream, data, func(err error) {
			if err != nil {
				c.abandon(m, err)
				return
			}
			c.mu.Lock()
			m.payload = true
			c.mu.Unlock()
			next.own.Wake(time.Now())
		})
		if err != nil {
			c.abandon(m, err)
			return nil
		}
	}
	if orphan { // the session with the current server has ended already
		c.switchTo(next, time.Now())
	}
	return nil
}

// setNext makes a link the next one. The caller holds c.mu.
func (c *Conn) setNext(next *link) {
	for _, b := range c.bindings {
		next.addSender(b)
	}
	c.next = next
}

// abandon drops a move and its link. If the session with the current server has ended, the client
// reconnects.
func (c *Conn) abandon(m *move, err error) {
	c.mu.Lock()
	if c.move != m {
		c.mu.Unlock()
		return
	}
	next := c.next
	c.move, c.next = nil, nil
	m.cancel()
	if m.searches() {
		c.abandoned = time.Now() // the session of that link may still replace the current one
	} else {
		c.failed(&m.notice, err)
	}
	if c.current == nil && !isClosed(c.closed) && c.gone == nil {
		c.startReconnecting(err)
	}
	c.mu.Unlock()
	if next != nil {
		next.own.CloseWith(transport.ErrQuit, "")
	}
	if m.reader != nil {
		m.reader.Finish(false)
	}
	c.report()
}

var (
	errLate     = fmt.Errorf("client: %w: it takes more than %v", transport.ErrHandover, switchWait)
	errNotBound = fmt.Errorf("client: %w: the other server did not bind the RPCs in time", transport.ErrHandover)
)

// trySwitch switches to the next link if the client is ready there and the tick of the handover is
// reached. It is called at ticks of all links.
func (c *Conn) trySwitch(now time.Time) {
	c.mu.Lock()
	m, current, next := c.move, c.current, c.next
	if m == nil || current == nil || next == nil {
		c.mu.Unlock()
		return
	}
	answers := m.searches() && current.own.Silence(now) < maxSilence
	ready := m.payload
	for n, s := range next.senders {
		ready = s.prepared() && (m.searches() || current.senders[n].idle()) && ready
	}
	if ready && m.ready.IsZero() {
		m.ready = now
	}
	since := m.ready
	c.mu.Unlock()
	switch {
	case answers:
		c.cfg.Logger.Info("the server answers again", "server", c.Server())
		c.abandon(m, nil)
	case !ready && now.Sub(m.connected) >= bindWait:
		c.abandon(m, errNotBound)
	case ready && m.worldsReady(next, since, now) && m.reached(current):
		c.switchTo(next, now)
	case !m.searches() && !now.Before(m.until):
		c.abandon(m, errLate)
	default:
		next.own.Wake(now.Add(switchStep))
	}
}

// worldsReady reports whether enough of the worlds of the other server has arrived to switch. since
// is the time at which everything else was ready. It waits only briefly for worlds that the other
// server may not offer, and never beyond switchWait. If the client's server is dead, it does not
// wait: the view shows that server's last state until the new one is complete.
func (m *move) worldsReady(next *link, since, now time.Time) bool {
	switch next.worlds.Prepared(now) {
	case replication.Complete:
		return true
	case replication.Absent:
		return m.searches() || now.Sub(since) >= worldWait
	default:
		return m.searches() || !now.Before(m.until)
	}
}

// reached reports whether the tick of a handover by the current server has come.
func (m *move) reached(current *link) bool {
	n := &m.notice
	return m.searches() || n.Stream == message.NoStream || current.worlds.Reached(n.Stream, n.Tick)
}

// switchTo makes the next link the current one: because of a move, or to connect.
func (c *Conn) switchTo(next *link, now time.Time) {
	c.mu.Lock()
	m, before := c.move, c.current
	e := Event{State: Connected, Attempt: c.attempt, New: true}
	c.current, c.next, c.move, c.addr = next, nil, nil, next.addr
	handedOver := m != nil && !m.searches()
	if m != nil {
		m.cancel()
		e.Attempt, c.attempt, c.wait = 0, 0, 0
	}
	if handedOver {
		e.Handover = HandoverCompleted
	}
	c.note(e)
	for n, b := range c.bindings {
		b.use(next.senders[n], !handedOver)
	}
	if before != nil && before.lost == nil {
		c.stats.Transport = endpoint.Sum(c.stats.Transport, before.own.Stats())
		c.old = append(c.old, before)
	}
	c.mu.Unlock()
	next.used = true
	if before != nil {
		_ = before.out.flush() // nothing can be done about an error
		before.parting = parting{since: now}
		before.own.Wake(now)
	}
	if m != nil {
		c.cfg.Logger.Info("continues at another server", "server", next.addr)
	}
	switch {
	case handedOver:
		c.notices.Refund(refunded)
		before.parting.to, before.parting.reader = next, m.reader
	case before != nil:
		before.own.CloseWith(transport.ErrQuit, "")
	}
	next.guard(func() { next.worlds.Show(now) })
	next.own.Wake(now) // binds the RPCs, and delivers messages that were held
	c.report()
}

// part ends the session with an old server when no messages are in flight in either direction.
func (c *Conn) part(old *link, now time.Time) {
	old.own.Wake(now.Add(switchStep))
	if !old.leave() {
		return
	}
	p := &old.parting
	switch {
	case p.to == nil:
	case !p.to.isCurrent(): // the client has switched again
		p.to = nil
		p.reader.Finish(true)
	case !p.asked:
		p.asked = old.own.SendReliable(message.AppendSwitch(nil)) == nil // after all earlier messages to that server
	default:
		c.passRelease(p)
	}
	if p.to != nil && now.Sub(p.since) >= releaseWait {
		c.endUnreleased(p, errUnreleased)
	}
	c.mu.Lock()
	nothingLeft := old.leaving
	c.mu.Unlock()
	if nothingLeft && !old.busy() || now.Sub(p.since) >= partingWait {
		old.own.CloseWith(transport.ErrQuit, "")
	}
}

var errUnreleased = fmt.Errorf("client: %w: the former server did not release the client in time", transport.ErrHandover)

// passRelease forwards the release, if it has arrived, to the other server, which then accepts the
// client's calls.
func (c *Conn) passRelease(p *parting) {
	if p.to == nil || p.release == nil {
		return
	}
	b := append([]byte{byte(message.Handover)}, p.release...)
	if err := p.to.own.SendReliable(b); !errors.Is(err, transport.ErrBacklog) {
		p.to = nil
		p.reader.Finish(true)
	}
}

// endUnreleased ends the session with the other server, which never received the release. The
// client reconnects.
func (c *Conn) endUnreleased(p *parting, err error) {
	to := p.to
	p.to = nil
	c.mu.Lock()
	to.cause = err
	c.mu.Unlock()
	to.own.CloseWith(transport.ErrQuit, "")
}

// endHandover ends a handover by a server whose session has ended: without its release, the other
// server would never accept the client's calls.
func (c *Conn) endHandover(l *link, err error) {
	err = fmt.Errorf("client: %w: the session with the former server has ended: %w", transport.ErrHandover, err)
	c.passRelease(&l.parting)
	if l.parting.to != nil {
		c.endUnreleased(&l.parting, err)
	}
	c.mu.Lock()
	m := c.move
	pending := m != nil && !m.searches() && c.current == l
	c.mu.Unlock()
	if pending {
		c.abandon(m, err)
	}
}

// end handles the end of a link's session. If it was the session of the current link, the client
// continues at the next server or reconnects.
func (c *Conn) end(l *link, err error) {
	c.mu.Lock()
	l.lost = err
	wasOld := slices.Contains(c.old, l)
	c.old = slices.DeleteFunc(c.old, func(o *link) bool { return o == l })
	if !wasOld { // otherwise it was counted at the switch
		c.stats.Transport = endpoint.Sum(c.stats.Transport, l.own.Stats())
	}
	l.requests.fail(err)
	m, next := c.move, c.next
	if c.current == l && next == nil {
		c.disconnect(l, err)
	}
	current := c.current == l
	c.mu.Unlock()
	switch {
	case m != nil && next == l:
		c.abandon(m, err)
	case current && next != nil:
		c.switchTo(next, time.Now())
	}
}
