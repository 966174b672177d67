package transport

import (
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// tick does what is due in the connections, and calls the handler.
func (l *Listener) tick(now time.Time) {
	for _, c := range l.pokes.take() {
		l.settle(c)
	}
	for c := l.timers.due(now); c != nil; c = l.timers.due(now) {
		c.advance(now)
		l.settle(c)
	}
	if !l.stopped.Load() {
		l.handler.Tick(now)
	}
}

// settle gives a connection that something has happened to its place among the timers, or removes it
// if it is over.
func (l *Listener) settle(c *Conn) {
	next, over := c.schedule()
	switch {
	case c.life == dead:
	case over:
		l.remove(c)
		l.log.Debug("connection ended", "remote", c.at, "cause", c.err())
	case !next.Equal(c.wake.at):
		l.timers.set(c, next)
	}
}

// closeAll ends every connection when the listener has stopped, for a cause or for none.
func (l *Listener) closeAll(cause error) {
	for _, c := range l.ids {
		c.finish(wire.CloseShutdown, cause)
		l.remove(c)
	}
}

// rescheduled and closed make the next tick look at c: the loop alone touches the timers.
func (l *Listener) rescheduled(c *Conn) { l.pokes.add(c) }

func (l *Listener) closed(c *Conn) { l.pokes.add(c) }

// rebind does nothing: the address is the listener's.
func (l *Listener) rebind(*Conn) error { return ErrDialedOnly }

// wake does nothing: the handler is ticked anyway.
func (l *Listener) wake(time.Time) {}

// wait does nothing: no goroutine runs for one connection alone.
func (l *Listener) wait() {}

// pokes are the connections that the next tick shall look at. It is safe for concurrent use.
type pokes struct {
	mu           sync.Mutex
	conns, spare []*Conn
}

// add notes a connection. One that is noted several times is looked at several times.
func (p *pokes) add(c *Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, c)
}

// take returns what was noted since the last call. The slice is used again by the call after the next.
func (p *pokes) take() []*Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.spare) // what the last call returned
	taken := p.conns
	p.conns, p.spare = p.spare[:0], taken
	return taken
}
