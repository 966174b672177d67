// Package natsstore keeps the shared state of a fleet in key-value buckets of NATS JetStream,
// version 2.11 or later:
//
//	nc, err := nats.Connect("nats://10.0.0.1,nats://10.0.0.2,nats://10.0.0.3", natsstore.Options()...)
//	store, err := natsstore.New(ctx, nc, natsstore.Config{Replicas: 3})
//	defer store.Close()
//
// There are four buckets: used tokens, the newest session of each client, notifications of replaced
// sessions, and the directory of servers. The cluster creates the key of a used token only once. So
// a token is used once in the fleet, even while a minority of the cluster's servers is down.
//
// It is a separate module, so that the main module does not depend on NATS.
package natsstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/token"
)

// Config configures a [Store]. The zero value of each field means its default.
type Config struct {
	// Prefix is the start of the buckets' names, by default "uplink". Fleets with different
	// prefixes share nothing.
	Prefix string
	// Replicas is the number of servers of the cluster that store each bucket, 1 to 5; default 1.
	// With three, the store survives the loss of one server.
	Replicas int
}

// Options returns options for nats.Connect, for a client that reconnects forever. It disconnects
// from a server of the cluster that does not answer for 4 to 6 s.
func Options() []nats.Option {
	return []nats.Option{
		nats.PingInterval(2 * time.Second), nats.MaxPingsOutstanding(2),
		nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond), nats.RetryOnFailedConnect(true),
		nats.ReconnectBufSize(-1), // calls fail immediately while there is no connection
	}
}

// Store is a [fleet.Store]. It is safe for concurrent use.
type Store struct {
	tokens, sessions, replaced, servers jetstream.KeyValue

	cancel  context.CancelFunc
	watch   func() // starts the watch of the directory, once
	watches sync.WaitGroup
	listed  chan struct{} // closed when the directory has been read

	mu        sync.Mutex
	directory map[string]fleet.Server
	announced map[string]time.Time // time at which this Store last announced each server
}

var _ fleet.Store = (*Store)(nil)

const (
	// notificationTTL is how long a notification of a replaced session remains available to its
	// server.
	notificationTTL = 10 * time.Minute
	// markerTTL is how long the stream remembers that a key expired.
	markerTTL = time.Minute
	// openTimeout is the time after which opening a bucket is tried again.
	openTimeout = 2 * time.Second
	// attempts is the maximum number of attempts to change a key that others change concurrently.
	attempts = 10
)

// New opens the buckets, and creates them if they do not exist. It retries until ctx is done, and
// only then returns errors of the connection.
func New(ctx context.Context, nc *nats.Conn, cfg Config) (*Store, error) {
	cfg.Prefix, cfg.Replicas = cmp.Or(cfg.Prefix, "uplink"), cmp.Or(cfg.Replicas, 1)
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("natsstore: %w", err)
	}
	s := &Store{directory: map[string]fleet.Server{}, announced: map[string]time.Time{}, listed: make(chan struct{})}
	for _, b := range [...]struct {
		kv   *jetstream.KeyValue
		name string
		ttl  time.Duration
	}{
		{&s.tokens, "tokens", token.MaxLifetime + fleet.ClockSkew},
		{&s.sessions, "sessions", fleet.SessionTTL},
		{&s.replaced, "replaced", notificationTTL},
		{&s.servers, "servers", fleet.ServerTTL},
	} {
		kv := jetstream.KeyValueConfig{Bucket: cfg.Prefix + "-" + b.name, TTL: b.ttl, Replicas: cfg.Replicas, LimitMarkerTTL: markerTTL}
		if *b.kv, err = open(ctx, js, kv); err != nil {
			return nil, fmt.Errorf("natsstore: bucket %s: %w", kv.Bucket, err)
		}
	}
	watching, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.watch = sync.OnceFunc(func() { s.watches.Go(func() { s.watchDirectory(watching) }) })
	return s, nil
}

// open opens a bucket, and tries again while the cluster has no leader.
func open(ctx context.Context, js jetstream.JetStream, cfg jetstream.KeyValueConfig) (jetstream.KeyValue, error) {
	for {
		try, cancel := context.WithTimeout(ctx, openTimeout) // if there is no leader, a request gets no answer
		kv, err := js.CreateOrUpdateKeyValue(try, cfg)
		cancel()
		if err == nil || errors.Is(err, jetstream.ErrJetStreamNotEnabled) {
			return kv, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Close ends all watches. It does not close the connection.
func (s *Store) Close() {
	s.cancel()
	s.watches.Wait()
}

// Use implements [fleet.Store].
func (s *Store) Use(ctx context.Context, u fleet.Use) error {
	life := max(time.Until(u.Expires), 0) + fleet.ClockSkew
	_, err := s.tokens.Create(ctx, u.Token.String(), u.Attempt[:], jetstream.KeyTTL(life.Truncate(time.Second)))
	if err == nil || !errors.Is(err, jetstream.ErrKeyExists) {
		return err
	}
	e, err := s.tokens.Get(ctx, u.Token.String())
	switch {
	case err != nil:
		return err
	case [32]byte(e.Value()[:min(len(e.Value()), 32)]) != u.Attempt:
		return token.ErrUsed
	}
	return nil
}

func clientKey(client uint64) string { return strconv.FormatUint(client, 10) }

// Begin implements [fleet.Store].
func (s *Store) Begin(ctx context.Context, session fleet.Session) error {
	value, err := json.Marshal(session)
	if err != nil {
		return err
	}
	key := clientKey(session.Client)
	for range attempts {
		var old fleet.Session
		e, err := s.sessions.Get(ctx, key)
		switch {
		case errors.Is(err, jetstream.ErrKeyNotFound):
			_, err = s.sessions.Create(ctx, key, value)
		case err != nil:
		default:
			if err := json.Unmarshal(e.Value(), &old); err != nil {
				return fmt.Errorf("natsstore: session of client %d: %w", session.Client, err)
			}
			if old.Server != session.Server && old.NewerThan(session) {
				return fleet.ErrNewer
			}
			_, err = s.sessions.Update(ctx, key, value, e.Revision())
		}
		switch {
		case errors.Is(err, jetstream.ErrKeyExists):
			continue // another server changed it
		case err == nil && old.Server != "" && old.Server != session.Server:
			_, err = s.replaced.Put(ctx, old.Server+"."+key, value)
		}
		return err
	}
	return fmt.Errorf("natsstore: the session of client %d changes all the time", session.Client)
}

// End implements [fleet.Store].
func (s *Store) End(ctx context.Context, session fleet.Session) error {
	e, err := s.sessions.Get(ctx, clientKey(session.Client))
	if err != nil {
		return orMissing(err)
	}
	var newest fleet.Session
	if json.Unmarshal(e.Value(), &newest) != nil || !newest.Same(session) {
		return nil
	}
	err = s.sessions.Delete(ctx, clientKey(session.Client), jetstream.LastRevision(e.Revision()))
	if errors.Is(err, jetstream.ErrKeyExists) {
		return nil // a newer session exists
	}
	return orMissing(err)
}

// orMissing returns err, or nil if err means that a key does not exist.
func orMissing(err error) error {
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil
	}
	return err
}

// Replaced implements [fleet.Store].
func (s *Store) Replaced(ctx context.Context, server string, f func(fleet.Session)) error {
	w, err := s.replaced.Watch(ctx, server+".*", jetstream.IgnoreDeletes())
	if err != nil {
		return err
	}
	defer w.Stop() //nolint:errcheck // errors have no consequence
	return each(ctx, w, func(e jetstream.KeyValueEntry) {
		var session fleet.Session
		if e != nil && json.Unmarshal(e.Value(), &session) == nil {
			f(session)
		}
	})
}

// each calls f with each update of a watch until ctx is done. It returns an error if the watch ends
// earlier. A nil entry means that all values from before the watch were passed.
func each(ctx context.Context, w jetstream.KeyWatcher, f func(jetstream.KeyValueEntry)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-w.Updates():
			if !ok {
				return errors.New("natsstore: the watch has ended")
			}
			f(e)
		}
	}
}

// Announce implements [fleet.Store].
func (s *Store) Announce(ctx context.Context, server fleet.Server) error {
	if err := server.Check(); err != nil {
		return err
	}
	if !s.announces(server.Name) {
		status, err := s.servers.Status(ctx)
		if err != nil {
			return err
		}
		// Servers that left within the last markerTTL count too.
		if err := server.CheckRoom(int(min(status.Values(), fleet.MaxServers))); err != nil {
			return err
		}
	}
	value, err := json.Marshal(server)
	if err != nil {
		return err
	}
	if _, err = s.servers.Put(ctx, server.Name, value); err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.announced[server.Name] = time.Now()
	}
	return err
}

// announces reports whether this Store has announced the server within ServerTTL. The directory
// then contains it.
func (s *Store) announces(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.announced, func(_ string, at time.Time) bool { return time.Since(at) > fleet.ServerTTL })
	_, ok := s.announced[name]
	return ok
}

// Withdraw implements [fleet.Store].
func (s *Store) Withdraw(ctx context.Context, name string) error {
	s.mu.Lock()
	delete(s.announced, name)
	s.mu.Unlock()
	return orMissing(s.servers.Delete(ctx, name))
}

// Servers implements [fleet.Store]. The first call starts a watch, so that later calls cost
// nothing. Game servers do not call it, so they receive no updates about each other. While the
// cluster is unreachable, it returns the last known servers.
func (s *Store) Servers(ctx context.Context) ([]fleet.Server, error) {
	s.watch()
	select {
	case <-s.listed:
	case <-ctx.Done():
		return nil, fmt.Errorf("natsstore: the directory has not been read yet: %w", context.Cause(ctx))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.directory), func(a, b fleet.Server) int { return strings.Compare(a.Name, b.Name) }), nil
}

// watchDirectory keeps the copy of the directory up to date until ctx is done.
func (s *Store) watchDirectory(ctx context.Context) {
	for ctx.Err() == nil {
		if w, err := s.servers.WatchAll(ctx); err == nil {
			_ = each(ctx, w, s.update)
			_ = w.Stop()
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// update applies an update of the directory. The time of receipt is the NATS server's. Entries
// outside of the limits are not listed; no Store writes such entries.
func (s *Store) update(e jetstream.KeyValueEntry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var server fleet.Server
	switch {
	case e == nil:
		select {
		case <-s.listed: // an earlier watch has completed the list
		default:
			close(s.listed)
		}
	case e.Operation() != jetstream.KeyValuePut:
		delete(s.directory, e.Key())
	case json.Unmarshal(e.Value(), &server) == nil && server.Name == e.Key() && server.Check() == nil:
		server.Updated = e.Created()
		s.directory[e.Key()] = server
	}
}
