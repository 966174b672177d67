package fleet

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/token"
)

// memory is the store of NewMemory.
type memory struct {
	mu       sync.Mutex
	used     map[token.ID]Use
	swept    time.Time
	sessions map[uint64]Session
	servers  map[string]Server
	watchers map[string]map[*watcher]bool // by server name
}

// watcher receives the sessions for one call of Replaced.
type watcher struct{ replaced chan Session }

// NewMemory returns an empty store.
func NewMemory() Store {
	return &memory{
		used: map[token.ID]Use{}, sessions: map[uint64]Session{}, servers: map[string]Server{},
		watchers: map[string]map[*watcher]bool{},
	}
}

// Use implements [Store].
func (m *memory) Use(_ context.Context, u Use) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); now.Sub(m.swept) > time.Minute {
		m.swept = now
		maps.DeleteFunc(m.used, func(_ token.ID, u Use) bool { return now.After(u.Expires.Add(ClockSkew)) })
	}
	if old, ok := m.used[u.Token]; ok && old.Attempt != u.Attempt {
		return token.ErrUsed
	}
	m.used[u.Token] = u
	return nil
}

// Begin implements [Store].
func (m *memory) Begin(_ context.Context, s Session) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	old, ok := m.sessions[s.Client]
	if ok && old.Server != s.Server {
		if old.NewerThan(s) {
			return ErrNewer
		}
		for w := range m.watchers[old.Server] {
			select {
			case w.replaced <- s:
			default: // Replaced may be called with a session late, or after a repeated Begin only
			}
		}
	}
	m.sessions[s.Client] = s
	return nil
}

// End implements [Store].
func (m *memory) End(_ context.Context, s Session) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sessions[s.Client].Same(s) {
		delete(m.sessions, s.Client)
	}
	return nil
}

// Replaced implements [Store].
func (m *memory) Replaced(ctx context.Context, server string, f func(Session)) error {
	w := &watcher{make(chan Session, 1024)}
	m.mu.Lock()
	if m.watchers[server] == nil {
		m.watchers[server] = map[*watcher]bool{}
	}
	m.watchers[server][w] = true
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.watchers[server], w)
	}()
	for {
		select {
		case s := <-w.replaced:
			f(s)
		case <-ctx.Done():
			return nil
		}
	}
}

// Announce implements [Store].
func (m *memory) Announce(_ context.Context, s Server) error {
	if err := s.Check(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expire()
	old, known := m.servers[s.Name]
	if err := s.CheckOwner(old); err != nil {
		return err
	}
	if !known {
		if err := s.CheckRoom(len(m.servers)); err != nil {
			return err
		}
	}
	s.Updated = time.Now()
	m.servers[s.Name] = s
	return nil
}

// expire removes servers that have not announced themselves for ServerTTL. The caller holds the
// lock.
func (m *memory) expire() {
	now := time.Now()
	maps.DeleteFunc(m.servers, func(_ string, s Server) bool { return now.Sub(s.Updated) > ServerTTL })
}

// Withdraw implements [Store].
func (m *memory) Withdraw(_ context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.servers, name)
	return nil
}

// Servers implements [Store].
func (m *memory) Servers(context.Context) ([]Server, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expire()
	return slices.SortedFunc(maps.Values(m.servers), func(a, b Server) int { return cmp.Compare(a.Name, b.Name) }), nil
}
