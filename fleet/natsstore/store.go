// Package natsstore keeps the shared state of a fleet in key-value buckets of NATS JetStream,
// version 2.11 or later:
//
//	store, err := natsstore.New("nats://10.0.0.1,nats://10.0.0.2,nats://10.0.0.3", natsstore.Config{Replicas: 3})
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
	"log/slog"
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
	// Options are further options of the connection, such as credentials. The Store sets the
	// intervals of pings and reconnections, and the handlers of errors.
	Options []nats.Option
	// Logger receives a record when the store fails, when the reason changes, when it works again,
	// and for each bucket that it creates; nil disables that.
	Logger *slog.Logger
}

// Store is a [fleet.Store]. It connects by itself, again and again, creates the buckets when NATS
// does not have them, and states in [Store.Check] what is wrong. It is safe for concurrent use.
type Store struct {
	nc  *nats.Conn
	js  jetstream.JetStream
	cfg Config

	cancel  context.CancelFunc
	work    sync.WaitGroup
	missing [bucketCount]bool // buckets that NATS did not have; used only by keep

	mu      sync.Mutex
	dialed  error   // of the last attempt to connect
	current *period // nil while the store fails
	failure error   // why the store fails; nil: it works
	failed  time.Time
	created uint64
}

// period is a time in which the store works, with the same buckets. Watches end with it.
type period struct {
	buckets [bucketCount]jetstream.KeyValue
	born    [bucketCount]time.Time // when NATS created the buckets
	ctx     context.Context        // done when the period ends
	end     context.CancelFunc

	watch     func()        // starts the watch of the directory, once
	listed    chan struct{} // closed when the directory has been read
	directory map[string]fleet.Server
}

var _ fleet.Store = (*Store)(nil)

// Indexes of buckets.
const (
	tokens = iota
	sessions
	replaced
	servers
	bucketCount
)

var buckets = [bucketCount]struct {
	name string
	ttl  time.Duration
}{
	tokens:   {"tokens", token.MaxLifetime + fleet.ClockSkew},
	sessions: {"sessions", fleet.SessionTTL},
	replaced: {"replaced", notificationTTL},
	servers:  {"servers", fleet.ServerTTL},
}

const (
	// notificationTTL is the time for which a notification of a replaced session remains available
	// to its server.
	notificationTTL = 10 * time.Minute
	// markerTTL is the time for which the stream stores the expiry of a key.
	markerTTL = time.Minute
	// checkInterval is the time between two checks of the buckets. A check takes at most
	// checkTimeout: without a leader, a request gets no answer. Their creation takes at most
	// createTimeout: the servers of a cluster have to agree on a leader of each.
	checkInterval, checkTimeout, createTimeout = time.Second, 2 * time.Second, 6 * time.Second
	// attempts is the maximum number of attempts to change a key that others change concurrently.
	attempts = 10
)

var errStarting = errors.New("natsstore: not connected yet")

// New returns the store at NATS servers, whose URLs are separated by commas. It returns at once,
// with an error if the configuration is wrong, and connects by itself. The store disconnects from a
// NATS server that does not answer for 4 to 6 s, and tries the next one.
func New(urls string, cfg Config) (*Store, error) {
	cfg.Prefix, cfg.Replicas, cfg.Logger = cmp.Or(cfg.Prefix, "uplink"), cmp.Or(cfg.Replicas, 1), cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	s := &Store{cfg: cfg, failure: errStarting, failed: time.Now()}
	own := []nats.Option{
		nats.PingInterval(2 * time.Second), nats.MaxPingsOutstanding(2),
		nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond), nats.RetryOnFailedConnect(true), nats.IgnoreAuthErrorAbort(),
		nats.ReconnectBufSize(-1), // calls fail immediately while there is no connection
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.dialed = err
		}),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // Check states errors
	}
	var err error
	if s.nc, err = nats.Connect(urls, append(own, cfg.Options...)...); err != nil {
		return nil, fmt.Errorf("natsstore: %w", err)
	}
	if s.js, err = jetstream.New(s.nc); err != nil {
		s.nc.Close()
		return nil, fmt.Errorf("natsstore: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.work.Go(func() { s.keep(ctx) })
	return s, nil
}

// Close ends all watches, and closes the connection.
func (s *Store) Close() {
	s.cancel()
	s.work.Wait()
	s.nc.Close()
}

// Check returns why the store fails; nil if it worked within the last seconds.
func (s *Store) Check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

// Stats counts what a Store did to work.
type Stats struct {
	// Reconnects counts connections after the first one, and Created the buckets that were missing.
	Reconnects, Created uint64
}

// Stats returns the counts.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{Reconnects: s.nc.Stats().Reconnects, Created: s.created}
}

// keep checks the buckets at each interval until ctx is done, and opens them when they are new.
func (s *Store) keep(ctx context.Context) {
	defer s.begin(nil, errors.New("natsstore: closed"))
	for ctx.Err() == nil {
		if p, err := s.check(ctx); ctx.Err() == nil {
			s.begin(p, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(checkInterval):
		}
	}
}

// check returns the current period if it continues, or a new one.
func (s *Store) check(ctx context.Context) (*period, error) {
	if !s.nc.IsConnected() {
		s.mu.Lock()
		defer s.mu.Unlock()
		cause := s.nc.LastError()
		if cause == nil || errors.Is(cause, nats.ErrNoServers) {
			cause = cmp.Or(s.dialed, nats.ErrNoServers)
		}
		return nil, fmt.Errorf("natsstore: no connection to NATS: %w", cause)
	}
	born, err := s.born(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	p := s.current
	s.mu.Unlock()
	if p != nil && born == p.born {
		return p, nil
	}
	p = &period{listed: make(chan struct{}), directory: map[string]fleet.Server{}}
	p.ctx, p.end = context.WithCancel(context.Background())
	p.watch = sync.OnceFunc(func() { s.work.Go(func() { s.watchDirectory(p) }) })
	for i := range buckets {
		s.missing[i] = s.missing[i] || born[i].IsZero()
	}
	if err := s.open(ctx, p); err != nil {
		return nil, err
	}
	for i := range buckets {
		if s.missing[i] {
			s.cfg.Logger.Info("bucket created", "bucket", s.bucket(i))
			s.mu.Lock()
			s.created++
			s.mu.Unlock()
		}
	}
	s.missing = [bucketCount]bool{}
	p.born, err = s.born(ctx)
	return p, err
}

// open opens all buckets at the same time, and creates those that are missing.
func (s *Store) open(ctx context.Context, p *period) error {
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	var opening sync.WaitGroup
	var failures [bucketCount]error
	for i, b := range buckets {
		cfg := jetstream.KeyValueConfig{Bucket: s.bucket(i), TTL: b.ttl, Replicas: s.cfg.Replicas, LimitMarkerTTL: markerTTL}
		opening.Go(func() {
			var err error
			if p.buckets[i], err = s.js.CreateOrUpdateKeyValue(ctx, cfg); err != nil {
				failures[i] = s.explain(i, err)
			}
		})
	}
	opening.Wait()
	return cmp.Or(failures[:]...)
}

func (s *Store) bucket(i int) string { return s.cfg.Prefix + "-" + buckets[i].name }

// born returns when NATS created each bucket; the zero time for a bucket that it does not have.
func (s *Store) born(ctx context.Context) (born [bucketCount]time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	for i := range buckets {
		stream, err := s.js.Stream(ctx, "KV_"+s.bucket(i))
		switch {
		case err == nil:
			born[i] = stream.CachedInfo().Created
		case !errors.Is(err, jetstream.ErrStreamNotFound):
			return born, s.explain(i, err)
		}
	}
	return born, nil
}

// explain adds to the error of a bucket what operators need.
func (s *Store) explain(i int, err error) error {
	switch {
	case errors.Is(err, jetstream.ErrLimitMarkerTTLNotSupported):
		return fmt.Errorf("natsstore: NATS at %s has version %s, want 2.11 or later: %w", s.nc.ConnectedUrlRedacted(), s.nc.ConnectedServerVersion(), err)
	case errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("natsstore: JetStream does not answer at %s: enable it in the configuration of NATS: %w", s.nc.ConnectedUrlRedacted(), err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("natsstore: bucket %s: no answer from NATS, as without a majority of its servers: %w", s.bucket(i), err)
	}
	return fmt.Errorf("natsstore: bucket %s: %w", s.bucket(i), err)
}

// begin begins a period and ends the one before it, unless it is the same. Without one, the store
// fails because of err.
func (s *Store) begin(p *period, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		p = nil
	}
	if s.current != nil && s.current != p {
		s.current.end()
	}
	s.current = p
	switch before := s.failure; {
	case err == nil && before != nil:
		s.cfg.Logger.Info("store works", "after", time.Since(s.failed))
	case err != nil && (before == nil || before.Error() != err.Error()):
		s.cfg.Logger.Error("store fails", "error", err)
		if before == nil {
			s.failed = time.Now()
		}
	}
	s.failure = err
}

// working returns the current period, or why the store fails.
func (s *Store) working() (*period, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current, s.failure
}

// Use implements [fleet.Store].
func (s *Store) Use(ctx context.Context, u fleet.Use) error {
	p, err := s.working()
	if err != nil {
		return err
	}
	life := max(time.Until(u.Expires), 0) + fleet.ClockSkew
	_, err = p.buckets[tokens].Create(ctx, u.Token.String(), u.Attempt[:], jetstream.KeyTTL(life.Truncate(time.Second)))
	if err == nil || !errors.Is(err, jetstream.ErrKeyExists) {
		return err
	}
	e, err := p.buckets[tokens].Get(ctx, u.Token.String())
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
	p, err := s.working()
	if err != nil {
		return err
	}
	value, err := json.Marshal(session)
	if err != nil {
		return err
	}
	key := clientKey(session.Client)
	for range attempts {
		var old fleet.Session
		e, err := p.buckets[sessions].Get(ctx, key)
		switch {
		case errors.Is(err, jetstream.ErrKeyNotFound):
			_, err = p.buckets[sessions].Create(ctx, key, value)
		case err != nil:
		default:
			if err := json.Unmarshal(e.Value(), &old); err != nil {
				return fmt.Errorf("natsstore: session of client %d: %w", session.Client, err)
			}
			if old.Server != session.Server && old.NewerThan(session) {
				return fleet.ErrNewer
			}
			_, err = p.buckets[sessions].Update(ctx, key, value, e.Revision())
		}
		switch {
		case errors.Is(err, jetstream.ErrKeyExists):
			continue // another server changed it
		case err == nil && old.Server != "" && old.Server != session.Server:
			_, err = p.buckets[replaced].Put(ctx, old.Server+"."+key, value)
		}
		return err
	}
	return fmt.Errorf("natsstore: the session of client %d changes all the time", session.Client)
}

// End implements [fleet.Store].
func (s *Store) End(ctx context.Context, session fleet.Session) error {
	p, err := s.working()
	if err != nil {
		return err
	}
	e, err := p.buckets[sessions].Get(ctx, clientKey(session.Client))
	if err != nil {
		return orMissing(err)
	}
	var newest fleet.Session
	if json.Unmarshal(e.Value(), &newest) != nil || !newest.Same(session) {
		return nil
	}
	err = p.buckets[sessions].Delete(ctx, clientKey(session.Client), jetstream.LastRevision(e.Revision()))
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
	p, err := s.working()
	if err != nil {
		return err
	}
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	w, err := p.buckets[replaced].Watch(watching, server+".*", jetstream.IgnoreDeletes())
	if err != nil {
		return err
	}
	defer w.Stop() //nolint:errcheck // errors have no consequence
	return p.each(ctx, w, func(e jetstream.KeyValueEntry) {
		var session fleet.Session
		if e != nil && json.Unmarshal(e.Value(), &session) == nil {
			f(session)
		}
	})
}

// each calls f with each update of a watch until ctx is done. It returns an error if the watch or
// the period ends earlier. A nil entry means that all values from before the watch were passed.
func (p *period) each(ctx context.Context, w jetstream.KeyWatcher, f func(jetstream.KeyValueEntry)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.ctx.Done():
			return errors.New("natsstore: the connection to NATS or its data was lost")
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
	p, err := s.working()
	if err != nil {
		return err
	}
	value, err := json.Marshal(server)
	if err != nil {
		return err
	}
	kv := p.buckets[servers]
	for range attempts {
		e, err := kv.Get(ctx, server.Name)
		switch {
		case errors.Is(err, jetstream.ErrKeyNotFound):
			status, err := kv.Status(ctx)
			if err != nil {
				return err
			}
			// Servers that left within the last markerTTL count too.
			if err := server.CheckRoom(int(min(status.Values(), fleet.MaxServers))); err != nil {
				return err
			}
			_, err = kv.Create(ctx, server.Name, value)
			if !errors.Is(err, jetstream.ErrKeyExists) {
				return err
			}
		case err != nil:
			return err
		default:
			if err := server.CheckOwner(entry(e)); err != nil {
				return err
			}
			_, err = kv.Update(ctx, server.Name, value, e.Revision())
			if !errors.Is(err, jetstream.ErrKeyExists) {
				return err
			}
		}
	}
	return fmt.Errorf("natsstore: the entry of server %s changes all the time", server.Name)
}

// Withdraw implements [fleet.Store].
func (s *Store) Withdraw(ctx context.Context, name string) error {
	p, err := s.working()
	if err != nil {
		return err
	}
	return orMissing(p.buckets[servers].Delete(ctx, name))
}

// Servers implements [fleet.Store]. The first call starts a watch, so that later calls cost
// nothing. Game servers do not call it, so they receive no updates about each other.
func (s *Store) Servers(ctx context.Context) ([]fleet.Server, error) {
	p, err := s.working()
	if err != nil {
		return nil, err
	}
	p.watch()
	select {
	case <-p.listed:
	case <-p.ctx.Done():
		return nil, cmp.Or(s.Check(), errStarting)
	case <-ctx.Done():
		return nil, fmt.Errorf("natsstore: the directory has not been read yet: %w", context.Cause(ctx))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(p.directory), func(a, b fleet.Server) int { return strings.Compare(a.Name, b.Name) }), nil
}

// watchDirectory keeps the copy of the directory up to date until the period ends.
func (s *Store) watchDirectory(p *period) {
	for {
		if w, err := p.buckets[servers].WatchAll(p.ctx); err == nil {
			_ = p.each(p.ctx, w, func(e jetstream.KeyValueEntry) { s.update(p, e) })
			_ = w.Stop()
		}
		select {
		case <-p.ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}

// update applies an update of the directory. Entries outside of the limits are not listed; no Store
// writes such entries.
func (s *Store) update(p *period, e jetstream.KeyValueEntry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case e == nil:
		select {
		case <-p.listed: // by an earlier watch
		default:
			close(p.listed)
		}
	case e.Operation() != jetstream.KeyValuePut:
		delete(p.directory, e.Key())
	default:
		if server := entry(e); server.Name == e.Key() && server.Check() == nil {
			p.directory[e.Key()] = server
		}
	}
}

// entry returns a server of the directory, the zero value if it is invalid. The time of receipt is
// the NATS server's.
func entry(e jetstream.KeyValueEntry) (server fleet.Server) {
	if json.Unmarshal(e.Value(), &server) != nil {
		return fleet.Server{}
	}
	server.Updated = e.Created()
	return server
}
