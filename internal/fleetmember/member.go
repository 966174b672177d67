// Package fleetmember is the part of a server in a fleet, between package ds and the store.
package fleetmember

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/token"
)

const (
	defaultInterval = 2 * time.Second
	defaultTimeout  = 2 * time.Second
	// maxUnrecorded is the maximum number of tokens used and of sessions ended during an outage
	// that are recorded after it.
	maxUnrecorded = 1 << 12
	// maxCalls is the maximum number of calls between two announcements.
	maxCalls = 1 << 9
	// maxOutage is the maximum of [fleet.Server.OutageSeconds].
	maxOutage = 1 << 30 * time.Second
)

// Member is a server's membership in a fleet. It asks the store about joins, records sessions, and
// announces the server. It is safe for concurrent use. Package ds creates it from ds.Config.Fleet.
type Member struct {
	cfg      fleet.Config
	replaced func(client uint64)
	wake     chan struct{}
	changed  chan struct{}
	started  time.Time

	mu       sync.Mutex
	stats    fleet.Stats
	failed   time.Time           // first failure since the last success; zero: none
	unlisted error               // why the directory does not accept the server
	sessions map[uint64]*current // sessions by client
	ended    []fleet.Session     // sessions to remove from the store
	unused   []fleet.Use         // used during an outage, to be recorded
}

// current is a session of the server.
type current struct {
	fleet.Session
	recorded time.Time // time at which the session was recorded; zero if it was not
}

// New returns a Member. Replaced is called for a client of this server that has a newer
// session elsewhere, on a goroutine of the Member.
func New(cfg fleet.Config, replaced func(client uint64)) (*Member, error) {
	if cfg.Interval == 0 {
		cfg.Interval = defaultInterval
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	labels := (&fleet.Server{Name: "a", Labels: cfg.Labels}).Check()
	switch err := fleet.CheckName(cfg.Name); {
	case cfg.Store == nil:
		return nil, errors.New("fleet: Config.Store is nil")
	case err != nil:
		return nil, fmt.Errorf("fleet: Config.Name: %w", err)
	case labels != nil:
		return nil, fmt.Errorf("fleet: Config.Labels: %w", labels)
	case cfg.Interval < 0 || cfg.Interval > fleet.ServerTTL/2:
		return nil, fmt.Errorf("fleet: Config.Interval is %v, want up to %v", cfg.Interval, fleet.ServerTTL/2)
	case cfg.Timeout < 0:
		return nil, fmt.Errorf("fleet: Config.Timeout is %v, want more than 0", cfg.Timeout)
	case cfg.Outage < 0:
		return nil, fmt.Errorf("fleet: Config.Outage is %v, want 0 or more", cfg.Outage)
	}
	return &Member{
		cfg: cfg, replaced: replaced, wake: make(chan struct{}, 1), changed: make(chan struct{}, 1), sessions: map[uint64]*current{},
		stats: fleet.Stats{Up: true}, started: time.Now(),
	}, nil
}

// Name returns fleet.Config.Name.
func (m *Member) Name() string { return m.cfg.Name }

// Labels returns fleet.Config.Labels, which must not be modified.
func (m *Member) Labels() map[string]string { return m.cfg.Labels }

// Servers returns the servers of the directory; see [fleet.Store].
func (m *Member) Servers(ctx context.Context) (servers []fleet.Server, err error) {
	err = m.call(ctx, func(ctx context.Context) error {
		servers, err = m.cfg.Store.Servers(ctx)
		return err
	})
	return servers, err
}

// Stats returns the counts.
func (m *Member) Stats() fleet.Stats {
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

// Admit returns nil if a client may join. u.Attempt identifies the client's request to join, which
// the client may send to several servers: one of them admits it. The error wraps [token.ErrUsed] if
// the token was used by another request or at another server; any other one means that the store
// failed.
func (m *Member) Admit(ctx context.Context, u fleet.Use) error {
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

// call calls the store and records whether the call succeeded.
func (m *Member) call(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.Timeout)
	defer cancel()
	err := f(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil || errors.Is(err, token.ErrUsed) || errors.Is(err, fleet.ErrNewer) || errors.Is(err, fleet.ErrInvalid):
		if !m.failed.IsZero() {
			m.cfg.Logger.Info("fleet store answers again", "after", time.Since(m.failed))
		}
		m.failed, m.stats.Up, m.stats.Err = time.Time{}, true, m.unlisted
	default:
		m.stats.Errors++
		if m.failed.IsZero() {
			m.failed = time.Now()
			m.cfg.Logger.Warn("fleet store fails", "error", err)
		}
		m.stats.Up, m.stats.Err = false, err
	}
	return err
}

// Begin records a session of this server in the store, asynchronously.
func (m *Member) Begin(s fleet.Session) {
	s.Server = m.cfg.Name
	m.mu.Lock()
	m.sessions[s.Client] = &current{Session: s}
	m.mu.Unlock()
	wake(m.wake)
}

// End removes a session of this server from the store, asynchronously.
func (m *Member) End(s fleet.Session) {
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

// Changed announces the server asynchronously, because it has begun to drain.
func (m *Member) Changed() { wake(m.changed) }

func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Run participates in the fleet until ctx is done: it records sessions, watches for replaced
// sessions, and announces the result of load, whose Name, Labels and Started it sets. Then it
// withdraws the server and its sessions, within fleet.Config.Timeout. If another server has the
// name at the start, it returns [fleet.ErrTaken] at once.
func (m *Member) Run(ctx context.Context, load func() fleet.Server) error {
	if err := m.announce(ctx, load); errors.Is(err, fleet.ErrTaken) {
		return err
	}
	var watching sync.WaitGroup
	watching.Go(func() { m.watch(ctx) })
	defer watching.Wait()
	tick := time.NewTicker(m.cfg.Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			m.withdraw(context.WithoutCancel(ctx))
			return nil
		case <-tick.C:
			_ = m.announce(ctx, load) // which logs errors
			m.record(ctx)
		case <-m.changed:
			_ = m.announce(ctx, load) // which logs errors
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

// announce announces the server, and returns why the store or the directory does not accept that.
func (m *Member) announce(ctx context.Context, load func() fleet.Server) error {
	s := load()
	s.Name, s.Labels, s.Started, s.OutageSeconds = m.cfg.Name, m.cfg.Labels, m.started, int(min(m.cfg.Outage, maxOutage)/time.Second)
	err := m.call(ctx, func(ctx context.Context) error { return m.cfg.Store.Announce(ctx, s) })
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats.Listed = err == nil
	switch {
	case errors.Is(err, fleet.ErrInvalid):
		if m.unlisted == nil {
			m.cfg.Logger.Error("server not listed", "server", m.cfg.Name, "error", err)
		}
		m.unlisted, m.stats.Err = err, err
	case err == nil && m.unlisted != nil:
		m.unlisted, m.stats.Err = nil, nil
		m.cfg.Logger.Info("server listed again", "server", m.cfg.Name)
	}
	return err
}

// watch calls the store's Replaced until ctx is done, and repeats it after each failure.
func (m *Member) watch(ctx context.Context) {
	for ctx.Err() == nil {
		err := m.cfg.Store.Replaced(ctx, m.cfg.Name, m.notify)
		if err != nil && ctx.Err() == nil {
			m.forget()
			select {
			case <-ctx.Done():
			case <-time.After(m.cfg.Interval):
			}
		}
	}
}

// forget makes all sessions due to be recorded: the store may have lost its data.
func (m *Member) forget() {
	m.mu.Lock()
	for _, c := range m.sessions {
		c.recorded = time.Time{}
	}
	m.mu.Unlock()
	wake(m.wake)
}

// notify ends the session of a client that has a newer one on another server.
func (m *Member) notify(newer fleet.Session) {
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

// record makes the due calls to the store, until one fails. The rest of many waits, so that the
// server is announced in between.
func (m *Member) record(ctx context.Context) {
	due := m.due()
	if len(due) > maxCalls {
		due = due[:maxCalls]
		defer wake(m.wake)
	}
	for _, f := range due {
		if err := m.call(ctx, f); err != nil && !errors.Is(err, token.ErrUsed) && !errors.Is(err, fleet.ErrNewer) {
			return
		}
	}
}

// due returns the calls that are due. A call that succeeds removes itself from the due calls.
func (m *Member) due() (calls []func(context.Context) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for _, u := range m.unused {
		calls = append(calls, func(ctx context.Context) error {
			err := m.cfg.Store.Use(ctx, u)
			if err == nil || errors.Is(err, token.ErrUsed) {
				m.remove(func() { m.unused = slices.DeleteFunc(m.unused, func(o fleet.Use) bool { return o.Token == u.Token }) })
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
		if now.Sub(c.recorded) < fleet.SessionTTL/2 {
			continue
		}
		s := c.Session
		calls = append(calls, func(ctx context.Context) error {
			err := m.cfg.Store.Begin(ctx, s)
			switch {
			case err == nil:
				m.remove(func() { c.recorded = now })
			case errors.Is(err, fleet.ErrNewer):
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

// lose ends a session whose client has a newer one on another server.
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

// withdraw removes the server and its sessions from the store, as far as calls succeed in time.
func (m *Member) withdraw(ctx context.Context) {
	m.mu.Lock()
	for _, c := range m.sessions {
		m.ended = append(m.ended, c.Session)
	}
	clear(m.sessions)
	unlisted := m.unlisted != nil
	m.mu.Unlock()
	withdraw := func(ctx context.Context) error { return m.cfg.Store.Withdraw(ctx, m.cfg.Name) }
	if unlisted { // the entry is another server's
		withdraw = func(context.Context) error { return nil }
	}
	if m.call(ctx, withdraw) == nil {
		ctx, cancel := context.WithTimeout(ctx, m.cfg.Timeout)
		defer cancel()
		m.record(ctx)
	}
}
