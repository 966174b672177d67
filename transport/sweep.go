package transport

import (
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// tick does what is due in the connections, and calls the handler.
func (s *shard) tick(now time.Time) {
	for _, c := range s.pokes.take() {
		s.settle(now, c)
	}
	s.timers.turn(now)
	for c := s.timers.take(now); c != nil; c = s.timers.take(now) {
		c.advance(now)
		s.settle(now, c)
	}
	if !s.stopped.Load() {
		s.handler.Tick(now)
	}
	s.watchSending(now)
}

// settle gives a connection that something has happened to its place among the timers, or removes it
// if it is over.
func (s *shard) settle(now time.Time, c *Conn) {
	next, over := c.schedule()
	switch {
	case c.life == dead:
	case over:
		s.remove(now, c)
		s.counters.ended(c.err())
		s.listener.log.Debug("connection ended", "remote", c.at, "cause", c.err())
	case !next.Equal(c.wake.at):
		s.timers.set(c, next)
	}
}

// closeAll ends every connection when the listener has stopped, for a cause or for none.
func (s *shard) closeAll(cause error) {
	now := time.Now()
	for _, c := range s.listener.of(s) {
		c.finish(wire.CloseShutdown, cause)
		s.remove(now, c)
	}
}

// rescheduled and closed make the next tick look at c: the loop alone touches the timers.
func (s *shard) rescheduled(c *Conn) { s.pokes.add(c) }

func (s *shard) closed(c *Conn) { s.pokes.add(c) }

// rebind does nothing: the address is the listener's.
func (s *shard) rebind(*Conn) error { return errDialedOnly }

// wake does nothing: the handler is ticked anyway.
func (s *shard) wake(time.Time) {}

// wait does nothing: no goroutine runs for one connection alone.
func (s *shard) wait() {}

// pokes are the connections that the next tick shall look at, each once. It is safe for concurrent use.
type pokes struct {
	mu           sync.Mutex
	conns, spare []*Conn
}

// add notes a connection, unless it is noted already.
func (p *pokes) add(c *Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !c.poked {
		c.poked = true
		p.conns = append(p.conns, c)
	}
}

// take returns what was noted since the last call. The slice is used again by the call after the next.
func (p *pokes) take() []*Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.spare) // what the last call returned
	taken := p.conns
	for _, c := range taken {
		c.poked = false
	}
	p.conns, p.spare = p.spare[:0], taken
	return taken
}
