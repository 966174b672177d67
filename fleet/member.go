package fleet

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/token"
)

// Config is a server's part in a fleet. The zero value of each field means its default.
type Config struct {
	// Store is the shared state; it is required.
	Store Store
	// Name identifies the server in the fleet: see [CheckName]. It is required, and unique.
	Name string
	// Labels are for the game, such as region or map. [Server.Check] states their limits.
	Labels map[string]string
	// Interval is the time between two calls of Announce, by default 2 s.
	Interval time.Duration
	// Timeout limits each call of the store, by default 2 s. The transport limits it to 5 s.
	Timeout time.Duration
	// Outage is for how long joins are allowed while the store fails; by default they are refused.
	// A token is then valid once at each server that it names, instead of once in the fleet.
	Outage time.Duration
	// Logger receives a record when the store fails and when it answers again; nil disables that.
	Logger *slog.Logger
}

const (
	defaultInterval = 2 * time.Second
	defaultTimeout  = 2 * time.Second
	// maxUnrecorded is the maximum number of tokens used and of sessions ended during an outage
	// that are recorded after it.
	maxUnrecorded = 1 << 12
)

// Stats is what a [Member] has counted.
type Stats struct {
	// Admitted, Used and Refused count joins by result: the store had not seen the token, the store
	// had seen it, or the store failed. Unchecked counts joins that were allowed while it failed.
	Admitted, Used, Refused, Unchecked uint64
	// Replaced counts sessions that ended because their client joined another server.
	Replaced uint64
	// Errors counts failed calls of the store.
	Errors uint64
	// Up reports whether the last call of the store succeeded.
	Up bool
	// Unrecorded is the number of sessions and used tokens that are not yet recorded.
	Unrecorded int
}

// Member is a server's part in a fleet: it asks the store about joins, records sessions, and
// announces the server. It is safe for concurrent use. Package ds makes one from ds.Config.Fleet.
type Member struct {
	cfg      Config
	replaced func(client uint64)
	wake     chan struct{}
	changed  chan struct{}
	unlisted bool // the directory does not accept the server; for Run alone

	mu       sync.Mutex
	stats    Stats
	failed   time.Time           // the first failure since the last success; zero: none
	sessions map[uint64]*current // by client
	ended    []Session           // to be removed from the store
	unused   []Use               // used during an outage, to be recorded
}

// current is a session of the server.
type current struct {
	Session
	recorded time.Time // the zero time: it is to be recorded
}

// NewMember returns a Member. Replaced is called for a client of this server that has a newer
// session elsewhere, on a goroutine of the Member.
func NewMember(cfg Config, replaced func(client uint64)) (*Member, error) {
	if cfg.Interval == 0 {
		cfg.Interval = defaultInterval
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	labels := (&Server{Name: "a", Labels: cfg.Labels}).Check()
	switch err := CheckName(cfg.Name); {
	case cfg.Store == nil:
		return nil, errors.New("fleet: Config.Store is nil")
	case err != nil:
		return nil, fmt.Errorf("fleet: Config.Name: %w", err)
	case labels != nil:
		return nil, fmt.Errorf("fleet: Config.Labels: %w", labels)
	case cfg.Interval < 0 || cfg.Interval > ServerTTL/2:
		return nil, fmt.Errorf("fleet: Config.Interval is %v, want up to %v", cfg.Interval, ServerTTL/2)
	case cfg.Timeout < 0:
		return nil, fmt.Errorf("fleet: Config.Timeout is %v, want more than 0", cfg.Timeout)
	case cfg.Outage < 0:
		return nil, fmt.Errorf("fleet: Config.Outage is %v, want 0 or more", cfg.Outage)
	}
	return &Member{
		cfg: cfg, replaced: replaced, wake: make(chan struct{}, 1), changed: make(chan struct{}, 1), sessions: map[uint64]*current{},
		stats: Stats{Up: true},
	}, nil
}

// Name returns Config.Name.
func (m *Member) Name() string { return m.cfg.Name }

// Labels returns Config.Labels, which must not be modified.
func (m *Member) Labels() map[string]string { return m.cfg.Labels }

// Servers returns the servers of the directory; see [Store].
func (m *Member) Servers(ctx context.Context) (servers []Server, err error) {
	err = m.call(ctx, func(ctx context.Context) error {
		servers, err = m.cfg.Store.Servers(ctx)
		return err
	})
	return servers, err
}

// Stats returns the counts.
func (m *Member) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stats
	s.Unrecorded = len(m.ended) + len(m.unused)
	for _, c := range m.sessions {
		if c.recorded.IsZero() {
			s.Unrecorded++
		}
	}
	return s
}

// Admit returns nil if a client may join. Use.Attempt identifies the client's request to join,
// which the client may send to several servers: one of them admits it. The error wraps
// [token.ErrUsed] if the token was used by another request or at another server; any other one
// means that the store failed.
func (m *Member) Admit(ctx context.Context, u Use) error {
	u.Attempt = sha256.Sum256(slices.Concat([]byte(m.cfg.Name), u.Attempt[:]))
	err := m.call(ctx, func(ctx context.Context) error { return m.cfg.Store.Use(ctx, u) })
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil:
		m.stats.Admitted++
	case errors.Is(err, token.ErrUsed):
		m.stats.Used++
	case ctx.Err() == nil && m.cfg.Outage > 0 && time.Since(m.failed) < m.cfg.Outage:
		m.stats.Unchecked++
		if len(m.unused) < maxUnrecorded {
			m.unused = append(m.unused, u)
		}
		return nil
	default:
		m.stats.Refused++
	}
	return err
}

// call calls the store, and notes whether that succeeded.
func (m *Member) call(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.Timeout)
	defer cancel()
	err := f(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil || errors.Is(err, token.ErrUsed) || errors.Is(err, ErrNewer) || errors.Is(err, ErrInvalid):
		if !m.failed.IsZero() {
			m.cfg.Logger.Info("fleet store answers again", "after", time.Since(m.failed))
		}
		m.failed, m.stats.Up = time.Time{}, true
	default:
		m.stats.Errors++
		if m.failed.IsZero() {
			m.failed = time.Now()
			m.cfg.Logger.Warn("fleet store fails", "error", err)
		}
		m.stats.Up = false
	}
	return err
}

// Begin records a session of this server, soon. It does not block.
func (m *Member) Begin(s Session) {
	s.Server = m.cfg.Name
	m.mu.Lock()
	m.sessions[s.Client] = &current{Session: s}
	m.mu.Unlock()
	wake(m.wake)
}

// End removes a session of this server, soon. It does not block.
func (m *Member) End(s Session) {
	s.Server = m.cfg.Name
	m.mu.Lock()
	if c := m.sessions[s.Client]; c != nil && c.Same(s) {
		delete(m.sessions, s.Client)
		if len(m.ended) < maxUnrecorded {
			m.ended = append(m.ended, s)
		}
	}
	m.mu.Unlock()
	wake(m.wake)
}

// Changed announces the server soon, because it has begun to drain. It does not block.
func (m *Member) Changed() { wake(m.changed) }

func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Run participates in the fleet until ctx is done: it records sessions, watches for those that are
// replaced, and announces what load returns, whose Name and Labels it sets. Then it withdraws the
// server and its sessions, within Config.Timeout.
func (m *Member) Run(ctx context.Context, load func() Server) {
	var watching sync.WaitGroup
	watching.Go(func() { m.watch(ctx) })
	defer watching.Wait()
	tick := time.NewTicker(m.cfg.Interval)
	defer tick.Stop()
	m.announce(ctx, load)
	for {
		select {
		case <-ctx.Done():
			m.withdraw(context.WithoutCancel(ctx))
			return
		case <-tick.C:
			m.announce(ctx, load)
			m.record(ctx)
		case <-m.changed:
			m.announce(ctx, load)
		case <-m.wake:
			if m.up() { // otherwise at the next tick
				m.record(ctx)
			}
		}
	}
}

func (m *Member) up() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failed.IsZero()
}

func (m *Member) announce(ctx context.Context, load func() Server) {
	s := load()
	s.Name, s.Labels = m.cfg.Name, m.cfg.Labels
	err := m.call(ctx, func(ctx context.Context) error { return m.cfg.Store.Announce(ctx, s) })
	switch invalid := errors.Is(err, ErrInvalid); {
	case invalid && !m.unlisted:
		m.unlisted = true
		m.cfg.Logger.Warn("server not listed", "server", m.cfg.Name, "error", err)
	case err == nil && m.unlisted:
		m.unlisted = false
		m.cfg.Logger.Info("server listed again", "server", m.cfg.Name)
	}
}

// watch calls Replaced until ctx is done, again after each failure.
func (m *Member) watch(ctx context.Context) {
	for ctx.Err() == nil {
		err := m.cfg.Store.Replaced(ctx, m.cfg.Name, m.notify)
		if err != nil && ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-time.After(m.cfg.Interval):
			}
		}
	}
}

// notify tells the server of a newer session of one of its clients.
func (m *Member) notify(newer Session) {
	m.mu.Lock()
	c := m.sessions[newer.Client]
	if c == nil || newer.Server == m.cfg.Name || !newer.NewerThan(c.Session) {
		m.mu.Unlock()
		return
	}
	delete(m.sessions, newer.Client)
	m.stats.Replaced++
	m.mu.Unlock()
	m.replaced(newer.Client)
}

// record makes the calls of the store that are due, until one fails.
func (m *Member) record(ctx context.Context) {
	for _, f := range m.due() {
		if err := m.call(ctx, f); err != nil && !errors.Is(err, token.ErrUsed) && !errors.Is(err, ErrNewer) {
			return
		}
	}
}

// due returns the calls that are due. Each of them removes its cause when it has succeeded.
func (m *Member) due() (calls []func(context.Context) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for _, u := range m.unused {
		calls = append(calls, func(ctx context.Context) error {
			err := m.cfg.Store.Use(ctx, u)
			if err == nil || errors.Is(err, token.ErrUsed) {
				m.remove(func() { m.unused = slices.DeleteFunc(m.unused, func(o Use) bool { return o.Token == u.Token }) })
			}
			return err
		})
	}
	for _, s := range m.ended {
		calls = append(calls, func(ctx context.Context) error {
			err := m.cfg.Store.End(ctx, s)
			if err == nil {
				m.remove(func() { m.ended = slices.DeleteFunc(m.ended, s.Same) })
			}
			return err
		})
	}
	for _, c := range m.sessions {
		if now.Sub(c.recorded) < SessionTTL/2 {
			continue
		}
		s := c.Session
		calls = append(calls, func(ctx context.Context) error {
			err := m.cfg.Store.Begin(ctx, s)
			switch {
			case err == nil:
				m.remove(func() { c.recorded = now })
			case errors.Is(err, ErrNewer):
				m.lose(c)
			}
			return err
		})
	}
	return calls
}

func (m *Member) remove(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

// lose ends a session whose client has a newer one elsewhere.
func (m *Member) lose(c *current) {
	m.mu.Lock()
	if m.sessions[c.Client] != c {
		m.mu.Unlock()
		return
	}
	delete(m.sessions, c.Client)
	m.stats.Replaced++
	m.mu.Unlock()
	m.replaced(c.Client)
}

// withdraw removes the server and its sessions from the store, as far as that succeeds in time.
func (m *Member) withdraw(ctx context.Context) {
	m.mu.Lock()
	for _, c := range m.sessions {
		m.ended = append(m.ended, c.Session)
	}
	clear(m.sessions)
	m.mu.Unlock()
	if m.call(ctx, func(ctx context.Context) error { return m.cfg.Store.Withdraw(ctx, m.cfg.Name) }) == nil {
		ctx, cancel := context.WithTimeout(ctx, m.cfg.Timeout)
		defer cancel()
		m.record(ctx)
	}
}
