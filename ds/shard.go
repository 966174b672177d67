package ds

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
)

// shard is a part of the server's players as the transport sees it: its methods are
// called one at a time, from one goroutine of Serve. A player stays in its shard.
type shard struct {
	server *Server
	index  int       // in the server's list
	start  time.Time // of the limits' clock

	players map[*Player]struct{} // others than Serve's goroutine read it with mu, and that one writes it so
	arrival arrival              // of the message that is being received
	due     []*Player            // have frames to ack
	feeding []*downstream        // whose initial state is being sent
	acked   time.Time            // when acks were sent
	fresh   []*counts            // have something to be published
	buf     []byte
	resets  uint64    // of the tap, when they were asked for
	counted time.Time // when the tap was told of counts
	empty   bool      // and stays so, since the server shuts down

	mu        sync.Mutex // guards the rest, and writing players
	acks      AckStats
	drops     [drops]uint64
	postponed []tapPanic // that were recovered while a lock was held
}

var _ interface{ Handled() } = (*shard)(nil)

func newShard(s *Server, index int) *shard {
	return &shard{server: s, index: index, start: time.Now(), players: map[*Player]struct{}{}}
}

// rpcShard is what a shard has for an RPC, of all its players.
type rpcShard struct {
	rates    rates
	scratch  *rpcdelta.Scratch // of decoders
	profiler profiler

	unreliable, reliable counts
}

func player(c *transport.Conn) *Player { return c.Value.(*Player) }

// Opened greets a player.
func (h *shard) Opened(c *transport.Conn) {
	s := h.server
	p := newPlayer(h, c)
	p.seal = c.Suite().Overhead()
	c.Value = p
	if s.leaving.Load() {
		c.Shutdown(leavingReason)
		return
	}
	if s.calls.Load() >= s.mostCalls() {
		c.Shutdown(behindReason)
		return
	}
	h.mu.Lock()
	h.players[p] = struct{}{}
	h.mu.Unlock()
	s.queue.joined(1)
	if s.cfg.Tap != nil {
		if p.tap = s.guardTap(p, c.Suite()); p.tap != nil {
			c.SetTap(p.tap.Carried)
		}
	}
	if s.cfg.Joined != nil {
		s.run(p, func() { s.cfg.Joined(p) })
	}
}

// Closed parts from one, and lets go of what only receiving needs: the game may
// keep the player.
func (h *shard) Closed(c *transport.Conn, err error) {
	s := h.server
	p := player(c)
	if _, joined := h.players[p]; !joined {
		return
	}
	h.handlePostponed() // it may be why the session ended
	err = p.endedBy(err)
	h.mu.Lock()
	delete(h.players, p)
	h.mu.Unlock()
	s.buffers.remove(p.buffers)
	p.bindings, p.buffers = nil, nil
	p.stopDowns()
	s.queue.joined(-1)
	if p.tap != nil {
		apart(func() { p.tap.Left(err) })
	}
	if s.cfg.Left != nil {
		s.run(p, func() { s.cfg.Left(p, err) })
	}
}

// list gives the players who are there.
func (h *shard) list() []*Player {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.players))
}

// Datagram takes a message of the unreliable channel.
func (h *shard) Datagram(c *transport.Conn, b []byte, at time.Time) {
	player(c).receive(b, at, false)
}

// Message takes one of the reliable channel.
func (h *shard) Message(c *transport.Conn, b []byte, at time.Time) {
	player(c).receive(b, at, true)
}

// Handled publishes what was counted. To do so for each datagram would cost more than to
// count it.
func (h *shard) Handled() {
	for _, c := range h.fresh {
		c.publish()
	}
	h.fresh = h.fresh[:0]
}

// Tick sends the acks that are due, and more of initial states.
func (h *shard) Tick(now time.Time) {
	s := h.server
	h.handlePostponed()
	h.feed(now)
	if now.Sub(h.acked) < s.cfg.ackInterval()-s.cfg.tick()/2 {
		return // ticks are not quite punctual, hence the half
	}
	h.acked = now
	if s.cfg.Tap != nil {
		h.tapped(now)
	}
	for _, p := range h.due {
		p.due = false
		h.ack(p, now)
	}
	if s.leaving.Load() {
		h.drain()
	}
	clear(h.due) // let go of players
	h.due = h.due[:0]
}

// ack sends the acks of all RPCs of a player, in one datagram unless that is too
// small, and at times how its jitter buffers stand.
func (h *shard) ack(p *Player, now time.Time) {
	for {
		h.buf = p.appendAcks(p.appendSlack(h.buf[:0], now))
		if len(h.buf) == 1 || p.conn.Send(h.buf) != nil {
			return // nothing more to say, or gone by now; acks may be lost
		}
		h.mu.Lock()
		h.acks.Messages++
		h.acks.Bytes += uint64(len(h.buf))
		h.acks.AEADBytes += uint64(p.seal)
		h.mu.Unlock()
	}
}

// drop counts what belongs to no RPC.
func (h *shard) drop(d Drop) {
	h.mu.Lock()
	h.drops[d]++
	h.mu.Unlock()
}
