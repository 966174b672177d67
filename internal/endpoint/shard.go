package endpoint

import (
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/internal/transport/admission"
	"github.com/uplink-rpc/uplink/internal/transport/session"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
	"github.com/uplink-rpc/uplink/transport"
)

// hintsPerSecond is the maximum rate of unauthenticated answers of a listener, over all addresses.
// Each shard has an equal part.
const hintsPerSecond = 100

// common is the state that the shards of a listener share.
type common struct {
	directory
	cfg  Config
	log  *slog.Logger
	stop func() // stops all shards

	limits *session.Limits // limits of the reliable messages of all connections together

	// handshakes is held during a handshake, so that no two shards accept the same token or exceed
	// MaxConns.
	handshakes  sync.Mutex
	draining    bool      // [Listener.Drain] was called
	warnedAhead time.Time // time of the last log record about a clock that is ahead
	admission   *admission.Controller
	admits      sync.WaitGroup // calls of [Config.Admit]
}

// shard is a packet connection of a listener and the loop that serves it, with the connections that
// were established there. Their datagrams wait for no other shard.
type shard struct {
	loop
	common   *common
	counters shardCounters
	dirty    dirtyConns // connections whose timers the next tick sets, since only the loop uses timers
	mailbox  mailbox
	flush    func() // function that Listener.Flush runs on this shard; stored, so that Flush does not allocate

	// Only the loop uses these.
	handler  Handler // set before serve
	conns    paths   // open connections by path, including connections of other shards
	timers   timers  // timers of this shard's connections
	cookies  *admission.Cookies
	start    time.Time
	hints    ratelimit.Bucket
	hintRate ratelimit.Rate
	buffers  session.Buffers
	out      [wire.HelloSize]byte // buffer for an answer that belongs to no session
}

func newShard(c *common, pc transport.PacketConn, shards int) *shard {
	now, rate := time.Now(), float64(max(hintsPerSecond/shards, 1))
	s := &shard{
		common:   c,
		conns:    newPaths(),
		timers:   newTimers(now),
		cookies:  admission.NewCookies(now),
		start:    now,
		hintRate: ratelimit.Rate{PerSecond: rate, Burst: rate},
	}
	s.loop = newLoop(pc, c.cfg.Tick, listenerBatch, &s.counters.sent, c.log)
	return s
}

// send sends an answer that belongs to no session.
func (s *shard) send(b []byte, to session.Path) { s.outbox.add(b, to, nil) }

// drops returns the counts of the current batch.
func (s *shard) drops() *transport.Drops { return &s.counters.batch.Dropped }

func (s *shard) count(v session.Verdict) {
	if v >= session.Malformed {
		*dropCounts(s.drops())[v-session.Malformed]++
	}
}

// mayHint reports whether an unauthenticated answer may be sent.
func (s *shard) mayHint(now time.Time) bool { return s.hints.Take(now.Sub(s.start), s.hintRate, 1) }

// publish publishes the results of a batch.
func (s *shard) publish() {
	s.counters.publish()
	if h, ok := s.handler.(interface{ Handled() }); ok {
		h.Handled()
	}
}

// runOn runs f in another shard's goroutine, or at once if it is this shard's.
func (s *shard) runOn(now time.Time, other *shard, f func(now time.Time)) {
	if other == s {
		f(now)
		return
	}
	if other.mailbox.post(f) {
		other.interrupt()
	}
}

func (s *shard) tick(now time.Time) {
	for _, c := range s.dirty.take() {
		s.reschedule(now, c)
	}
	s.timers.advance(now)
	for c := s.timers.next(now); c != nil; c = s.timers.next(now) {
		s.advance(now, c)
	}
	s.counters.publish()
	if !s.stopped.Load() {
		s.handler.Tick(now)
	}
	_ = s.monitor.check(now, &s.outbox)
}

func (s *shard) advance(now time.Time, c *Conn) {
	defer c.recovered(s.handler)
	c.update(func(session *session.Session) { session.Advance(now) })
	s.reschedule(now, c)
}

// reschedule sets the timer of a connection after an event, or removes the connection if it has
// ended.
func (s *shard) reschedule(now time.Time, c *Conn) {
	next, over := c.schedule()
	switch {
	case c.phase == ended:
	case over:
		s.remove(now, c)
		countEnd(&s.counters.batch, c.err())
		s.common.log.Debug("connection ended", "remote", c.path.Addr, "cause", c.err())
	case !next.Equal(c.timer.at):
		s.timers.set(c, next)
	}
}

// setPath registers a connection's path at the shard that receives its datagrams. A connection that
// had the path before is still found by its session id.
func (s *shard) setPath(now time.Time, c *Conn, path session.Path, via *shard) {
	if c.path == path && c.via == via {
		return
	}
	from := c.path.Addr
	s.clearPath(now, c)
	c.path, c.via = path, via
	if from.IsValid() && from != path.Addr {
		s.counters.batch.PathMigrations++
		if h, ok := s.handler.(interface {
			Moved(c *Conn, from netip.AddrPort)
		}); ok && c.phase == opened {
			h.Moved(c, from)
		}
	}
	s.runOn(now, via, func(time.Time) { via.conns.set(path, c) })
}

func (s *shard) clearPath(now time.Time, c *Conn) {
	if path, via := c.path, c.via; path.Addr.IsValid() {
		s.runOn(now, via, func(time.Time) { via.conns.remove(path, c) })
	}
}

// remove unregisters a connection that has ended, and notifies the handler, once.
func (s *shard) remove(now time.Time, c *Conn) {
	if c.phase == ended {
		return
	}
	s.timers.remove(c)
	s.clearPath(now, c)
	s.common.remove(c)
	c.notifyClosed(s.handler)
}

// closeAll closes the connections of this shard because it was stopped, or because its packet
// connection failed.
func (s *shard) closeAll(failure error) {
	now, cause := time.Now(), session.ErrShutdown
	if failure != nil {
		cause = fmt.Errorf("%w: %w", cause, failure)
	}
	for _, c := range s.common.all() {
		if c.shard == s {
			c.finish(cause)
			s.remove(now, c)
		}
	}
}
