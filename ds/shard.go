package ds

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/transport"
)

var _ interface { // optional methods that the transport calls
	Handled()
	Moved(c *endpoint.Conn, from netip.AddrPort)
	Refused(client uint64, err error)
	Panicked(c *endpoint.Conn, v any, stack []byte)
} = (*shard)(nil)

// shard handles a part of the server's players. The transport calls its methods one at a time, on
// the shard's goroutine. A player stays in its shard.
type shard struct {
	server *Server
	index  int       // index in Server.shards
	start  time.Time // start of the clock of rate limits

	// The shard's goroutine writes this map with mu held and reads it without. Other goroutines
	// read it with mu held.
	players map[*Player]struct{}

	// Used only by the shard's goroutine:
	arrival     arrival               // message that is being received
	due         []*Player             // players with frames to ack
	initial     replication.SendQueue // queue of initial states
	polled      time.Time             // last tick of the tap, of handovers and of the drain
	unpublished []*counts
	buf         []byte
	sequencing  []*sequencer // sequencers in which frames wait
	switched    []*Player    // players who have switched to other servers
	awaiting    []*Player    // players whom another server has not released
	binds       bindQueue
	resets      uint64    // last value of Tap.Resets
	counted     time.Time // last value of Tap.Counted
	empty       bool      // the server shuts down or drains, and the last player has left

	acks ackCounts

	mu        sync.Mutex  // guards the rest
	handing   []*outbound // handovers that began in the last handoverLife
	drops     [drops]uint64
	postponed []func() // handlers for panics of taps that were recovered while a lock was held
}

type arrival struct {
	at        time.Time
	since     time.Duration // time since the shard's start, for rate limits
	reliable  bool
	number    uint64 // packet number of its datagram, on the unreliable channel
	coalesced bool   // the payload is not the first of its datagram
	extra     int    // bytes of overhead that the payload added to the datagram
}

// Opened registers a new connection and creates its Player.
func (h *shard) Opened(c *endpoint.Conn) {
	s := h.server
	p := newPlayer(h, c)
	p.openStreams()
	c.Value = p
	switch {
	case s.leaving.Load():
		c.CloseWith(transport.ErrShutdown, "")
		h.Refused(c.ClientID(), transport.ErrShutdown)
		return
	case s.calls.Load() >= s.maxCalls():
		reason := fmt.Sprintf("%d calls of Joined and Left wait for Poll", s.maxCalls())
		c.CloseWith(transport.ErrServerBusy, reason)
		h.Refused(c.ClientID(), fmt.Errorf("%w: %s", transport.ErrServerBusy, reason))
		return
	}
	h.mu.Lock()
	h.players[p] = struct{}{}
	h.mu.Unlock()
	if h.empty { // the handshake began before the drain
		h.empty = false
		s.populated.Add(1)
	}
	s.queue.addPlayers(1)
	if s.cfg.Hooks.Tap != nil {
		if p.tap = s.guardTap(p, c.Suite()); p.tap != nil {
			c.SetTap(p.tap.Carried)
		}
	}
	awaits := c.Handover() != [sha256.Size]byte{}
	if awaits {
		p.awaits.Store(true)
		p.standby = &standby{over: make(chan struct{})}
		h.awaiting = append(h.awaiting, p)
	}
	if f := s.cfg.Hooks.Connected; f != nil {
		h.callback(p, func() { f(p) })
	}
	if !awaits {
		h.join(p)
	}
}

// join reports a new player to the game.
func (h *shard) join(p *Player) {
	p.awaits.Store(false)
	if m := h.server.member; m != nil {
		m.Begin(fleetSession(p.conn))
	}
	p.note(joinedEvent, "", nil)
	h.server.cfg.Logger.Info("player connected", "player", p.ID(), "client", p.ClientID(), "addr", p.Addr())
	if f := h.server.cfg.Joined; f != nil {
		h.callback(p, func() { f(p) })
	}
}

// Closed unregisters a connection and frees its receive state: the game may keep the Player.
func (h *shard) Closed(c *endpoint.Conn, err error) {
	s := h.server
	p := c.Value.(*Player)
	if _, joined := h.players[p]; !joined {
		return
	}
	for _, q := range h.sequencing {
		if q.player == p {
			q.flush()
		}
	}
	h.handlePostponed() // one of these panics may have ended the session
	switch failure := p.failure.Load(); {
	case failure != nil && errors.Is(err, transport.ErrKicked):
		err = *failure
	case !p.handover.switched.IsZero():
		err = transport.ErrHandedOver
	case (s.leaving.Load() || p.leaves.Load()) && errors.Is(err, transport.ErrQuit):
		err = transport.ErrShutdown // the server asked the client to leave
	}
	h.mu.Lock()
	delete(h.players, p)
	h.mu.Unlock()
	s.buffers.remove(p.bindings.buffers)
	for _, b := range p.bindings.all {
		if b != nil && b.time != nil {
			b.rpc.time.leave(p.ClientID(), time.Now())
		}
	}
	p.bindings.end()
	p.outgoing.Store(nil)
	p.streams.Load().Close()
	p.bulk.End(err)
	s.queue.addPlayers(-1)
	if s.member != nil {
		s.member.End(fleetSession(c))
	}
	awaited := p.awaits.Load()
	if awaited {
		close(p.standby.over)
		h.Refused(p.ClientID(), err)
	} else {
		p.note(eventOf("left", err), "", err)
		s.cfg.Logger.Info("player disconnected", "player", p.ID(), "client", p.ClientID(), "cause", err)
	}
	if p.tap != nil {
		onGoroutine(func() { p.tap.Left(err) })
	}
	if s.cfg.Left != nil && !awaited {
		h.callback(p, func() { s.cfg.Left(p, err) })
	}
}

// Refused notes that a client got no session. Of repeated events, only the first one is logged.
func (h *shard) Refused(client uint64, err error) {
	s, t := h.server, eventOf("refused", err)
	if s.events.add(event{typ: t, client: client, err: err}) {
		s.cfg.Logger.Info("client refused", "client", client, "cause", eventTypes[t].cause, "error", err)
	}
}

// Moved reports a player's new address to the game. At most one call of a player waits for Poll.
func (h *shard) Moved(c *endpoint.Conn, from netip.AddrPort) {
	s := h.server
	p := c.Value.(*Player)
	if _, joined := h.players[p]; !joined || p.awaits.Load() {
		return
	}
	p.note(movedEvent, "", nil)
	if s.cfg.Hooks.Moved != nil && !p.moved.Swap(true) {
		h.callback(p, func() {
			p.moved.Store(false)
			s.cfg.Hooks.Moved(p, from)
		})
	}
}

func (h *shard) callback(p *Player, f func()) {
	s := h.server
	if s.cfg.Poll {
		s.calls.Add(1)
		s.queue.push(nil, 0, call(func() { s.calls.Add(-1); s.guard(p, f) }))
		return
	}
	onGoroutine(func() { s.guard(p, f) })
}

func (h *shard) list() []*Player {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(slices.Collect(maps.Keys(h.players)), func(p *Player) bool { return p.awaits.Load() })
}

// Datagram handles a message of the unreliable channel.
func (h *shard) Datagram(c *endpoint.Conn, b []byte, at time.Time) {
	c.Value.(*Player).receive(b, at, false)
}

// Message handles a message of the reliable channel.
func (h *shard) Message(c *endpoint.Conn, b []byte, at time.Time) {
	c.Value.(*Player).receive(b, at, true)
}

// Handled publishes the counts of a batch of datagrams, because publishing them after each datagram
// would cost more than counting.
func (h *shard) Handled() {
	for _, c := range h.unpublished {
		c.publish()
	}
	h.unpublished = h.unpublished[:0]
}

// Tick sends the acks that are due, and the next parts of initial states.
func (h *shard) Tick(now time.Time) {
	s := h.server
	h.handlePostponed()
	h.answerBinds()
	h.initial.Send(now.Sub(h.start))
	h.sequencing = slices.DeleteFunc(h.sequencing, func(q *sequencer) bool { return q.expire(now) })
	h.sendAcks(now)
	if now.Sub(h.polled) < s.cfg.ackInterval()-s.cfg.tick()/2 {
		return // half a tick of tolerance, as ticks are not punctual
	}
	h.polled = now
	h.finishHandovers(now)
	h.expireHandovers(now)
	if s.cfg.Hooks.Tap != nil {
		h.pollTap(now)
	}
	if s.leaving.Load() || s.draining.Load() {
		h.drain()
	}
}

const tapCountEvery = time.Second

// pollTap passes the transport's counts to the tap, and resets all streams if the tap requests it.
func (h *shard) pollTap(now time.Time) {
	t := h.server.cfg.Hooks.Tap
	if h.index == 0 && now.Sub(h.counted) >= tapCountEvery {
		h.counted = now
		h.server.guard(nil, func() { t.Counted(h.server.ln.Stats()) })
	}
	n := h.resets
	h.server.guard(nil, func() { n = t.Resets() })
	if n == h.resets {
		return
	}
	h.resets = n
	for p := range h.players {
		for _, b := range p.bindings.all {
			if b != nil {
				p.bindings.Lock()
				b.dec.AskReset()
				p.bindings.Unlock()
				p.noteAck(b)
			}
		}
	}
}

// drain asks the clients that have received all reliable messages to leave, repeatedly because the
// datagram may be lost. While the server drains, it asks only clients that are not handed over. It
// records when all players have left and no client whose token was used before the drain can still
// join.
func (h *shard) drain() {
	s := h.server
	for p := range h.players {
		if (s.leaving.Load() || p.leaves.Load()) && p.handover.switched.IsZero() && p.conn.Unacked() == 0 && !p.bulk.Busy() {
			_ = p.conn.Send([]byte{byte(message.Leaving)}) // fails only if the session has ended
		}
	}
	if len(h.players) == 0 && !h.empty {
		h.empty = true
		s.populated.Add(-1)
	}
	if s.populated.Load() == 0 && s.ln.Empty() && s.queue.idle() {
		s.drainOnce.Do(func() { close(s.drained) })
	}
}

// fleetSession returns the session of a connection, for the fleet.
func fleetSession(c *endpoint.Conn) fleet.Session {
	return fleet.Session{Client: c.ClientID(), ID: c.ID(), Issued: c.Issued()}
}

// sendAcks sends acks in separate datagrams to the players to whom no acks, piggybacked or not,
// were sent for an interval, if the acks are worth a datagram. The acks of different players are
// therefore sent in different ticks.
func (h *shard) sendAcks(now time.Time) {
	s := h.server
	waiting := h.due[:0]
	for _, p := range h.due {
		p.bindings.Lock()
		// Half a tick of tolerance, as ticks are not punctual.
		// The bits of a datagram besides the acks.
		alone := 8 * (endpoint.IPSize + endpoint.HeaderSize + p.overhead + 1)
		switch {
		case now.Sub(p.bindings.sent) < s.cfg.ackInterval()-s.cfg.tick()/2, p.bindings.ackDue() && (p.bindings.carries(now) || !p.bindings.acksPay(alone)):
			waiting = append(waiting, p)
		default:
			p.due = false
			h.ack(p, now)
		}
		p.bindings.Unlock()
	}
	clear(h.due[len(waiting):]) // release the players
	h.due = waiting
}

// ack sends the acks of all RPCs of a player in as few datagrams as possible, and a report on its
// jitter buffers if that is due. The player's bindings must be locked.
func (h *shard) ack(p *Player, now time.Time) {
	for p.bindings.ackDue() {
		h.buf = p.bindings.appendAcks(h.buf[:0], transport.MaxPayload, now)
		if p.conn.Send(h.buf) != nil {
			return // the session has ended
		}
		p.bindings.sent = now
		h.acks.add(endpoint.Acks{Messages: 1, Bytes: uint64(len(h.buf)), AEADBytes: uint64(p.overhead)})
	}
}

// Panicked handles a panic of code that decodes data from a player. The transport calls it.
func (h *shard) Panicked(c *endpoint.Conn, v any, stack []byte) {
	p, _ := c.Value.(*Player) // nil until it is set
	h.server.panicked(p, v, stack)
}

func (h *shard) handlePostponed() {
	for {
		h.mu.Lock()
		if len(h.postponed) == 0 {
			h.mu.Unlock()
			return
		}
		handle := h.postponed[0]
		h.postponed = h.postponed[1:]
		h.mu.Unlock()
		handle()
	}
}

// finishHandovers ends the sessions of players who have switched to another server, once no
// messages are in flight any more.
func (h *shard) finishHandovers(now time.Time) {
	h.switched = slices.DeleteFunc(h.switched, func(p *Player) bool {
		if _, joined := h.players[p]; !joined {
			return true
		}
		p.asked.Lock()
		requests := len(p.asked.open)
		p.asked.Unlock()
		if p.sendRelease() && requests == 0 && !p.bulk.Busy() && p.conn.Finish(transport.ErrHandedOver) {
			_ = p.conn.Send([]byte{byte(message.Leaving)}) // fails only if the session has ended
		}
		if now.Sub(p.handover.switched) >= handoverLinger {
			p.end(transport.ErrHandedOver, "")
		}
		return false
	})
}

// expireHandovers ends the handovers to and from other servers that take too long.
func (h *shard) expireHandovers(now time.Time) {
	h.mu.Lock()
	var late []*outbound
	h.handing = slices.DeleteFunc(h.handing, func(o *outbound) bool {
		over := now.Sub(o.begun) >= handoverLife
		if over {
			late = append(late, o)
		}
		return over
	})
	h.mu.Unlock()
	for _, o := range late {
		o.fail(fmt.Errorf("ds: %w: %w: the client has not switched within %v", transport.ErrHandover, transport.ErrTimeout, handoverLife))
		o.stream.Abort("it takes too long")
	}
	h.awaiting = slices.DeleteFunc(h.awaiting, func(p *Player) bool {
		if _, open := h.players[p]; !open || !p.awaits.Load() {
			return true
		}
		over := now.Sub(p.opened) >= standbyLife
		if over {
			p.violate("the other server has not released the player")
		}
		return over
	})
}
