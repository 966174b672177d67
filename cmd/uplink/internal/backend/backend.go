// Package backend is the HTTP service of "uplink backend": it issues connect tokens for the servers
// of a fleet, and shows them.
package backend

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/fleet/httpstore"
	"github.com/uplink-rpc/uplink/internal/status"
	"github.com/uplink-rpc/uplink/internal/storemetrics"
	"github.com/uplink-rpc/uplink/internal/web"
	"github.com/uplink-rpc/uplink/token"
)

// Config configures a [Backend].
type Config struct {
	// Store contains the directory of servers. It is also served below /fleet/.
	Store fleet.Store
	// GameSecret authorizes the game's login service to request tokens, and is the password of the
	// page. FleetSecret authorizes servers. An empty secret authorizes all programs on this
	// machine.
	GameSecret, FleetSecret string
	// Lifetime is the lifetime of tokens.
	Lifetime time.Duration
	Log      *slog.Logger
}

// Backend is the HTTP service. It is safe for concurrent use.
type Backend struct {
	cfg    Config
	mux    *http.ServeMux
	store  *storemetrics.Store
	counts counts

	mu      sync.Mutex
	keys    []token.IssuerKey
	known   []fleet.Server // the directory as it was read last
	seen    map[string]sighting
	missing map[string]string // key ids by server
	failure error             // why the store fails; nil: it works
	failed  time.Time
	said    map[string]time.Time // when a cause without a token was logged
}

// New returns a Backend that issues tokens with these keys. The first key is for servers that
// announce no key. [Backend.Run] watches the store.
func New(cfg Config, keys []token.IssuerKey) (*Backend, error) {
	b := &Backend{
		cfg: cfg, mux: http.NewServeMux(), keys: keys, counts: newCounts(),
		seen: map[string]sighting{}, missing: map[string]string{}, said: map[string]time.Time{},
	}
	b.store = storemetrics.New(cfg.Store, func() error {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.failure
	})
	if err := status.Handle(b.mux, nil, b.ready, b.store, b); err != nil {
		return nil, err
	}
	b.mux.Handle("/fleet/", http.StripPrefix("/fleet", httpstore.Handler(b.store, cfg.FleetSecret)))
	b.mux.HandleFunc("POST /token", b.issue)
	b.mux.HandleFunc("GET /servers", b.servers)
	b.mux.HandleFunc("GET /{$}", b.page)
	return b, nil
}

// SetKeys replaces the keys.
func (b *Backend) SetKeys(keys []token.IssuerKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keys = keys
	b.check()
}

// key returns the key for tokens of a server that announces the given key id. The caller holds the
// lock.
func (b *Backend) key(id string) (token.IssuerKey, bool) {
	for _, k := range b.keys {
		if id == "" || k.ID().String() == id {
			return k, true
		}
	}
	return token.IssuerKey{}, false
}

// ServeHTTP implements [http.Handler].
func (b *Backend) ServeHTTP(w http.ResponseWriter, r *http.Request) { b.mux.ServeHTTP(w, r) }

// Request is the body of a request for a token. The login service makes it for a player whom it has
// authenticated.
type Request struct {
	Client   uint64            `json:"client,string"`       // client id of the player
	Labels   map[string]string `json:"labels,omitempty"`    // labels that the server must have
	Server   string            `json:"server,omitempty"`    // name of the server; empty: any
	Avoid    []netip.AddrPort  `json:"avoid,omitempty"`     // addresses of servers that do not answer the player
	UserData []byte            `json:"user_data,omitempty"` // passed to the game on the server
}

// Answer is the answer to a Request.
type Answer struct {
	Name    string         `json:"name"`
	Server  netip.AddrPort `json:"server"` // address to dial
	Token   token.Token    `json:"token"`
	Expires time.Time      `json:"expires"`
}

// Results of requests for a token, in metrics and logs.
const (
	issued     = "issued"
	noServer   = "no_server"
	full       = "full"
	noKey      = "no_key"
	storeFails = "store"
)

// none is why there is no server for a player.
type none struct {
	result string
	error
}

// sayInterval is the minimum time between two records with the same cause.
const sayInterval = 10 * time.Second

func (b *Backend) issue(w http.ResponseWriter, r *http.Request) {
	begun, result := time.Now(), issued
	defer func() {
		b.counts.tokens.WithLabelValues(result).Inc()
		b.counts.seconds.Observe(time.Since(begun).Seconds())
	}()
	if !web.Authorize(w, r, b.cfg.GameSecret) {
		result = "unauthorized"
		return
	}
	var q Request
	d := json.NewDecoder(web.Body(w, r, 4096))
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil {
		result = "invalid"
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a, err := b.choose(r, &q)
	why := none{}
	switch {
	case errors.As(err, &why):
		result = why.result
		b.say(&q, why)
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	case err != nil:
		result = "failed"
		b.cfg.Log.Error("token not issued", "client", q.Client, "error", err)
		http.Error(w, "no token can be issued", http.StatusInternalServerError)
	default:
		b.cfg.Log.Debug("token issued", "client", q.Client, "server", a.Name, "token", a.Token.ID().String())
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store") // the token is a secret
		_ = json.NewEncoder(w).Encode(a)            // fails only if the client has disconnected
	}
}

// say logs that there is no server for a player, unless it did for the same cause a moment ago.
func (b *Backend) say(q *Request, why none) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); now.Sub(b.said[why.result]) >= sayInterval {
		b.said[why.result] = now
		b.cfg.Log.Warn("no server for a player", "client", q.Client, "cause", why.result, "error", why.error)
	}
}

// choose issues a token for a server. The error is of type none if there is no server.
func (b *Backend) choose(r *http.Request, q *Request) (a Answer, err error) {
	servers, failure := b.list(r.Context())
	suits := func(s *fleet.Server) bool {
		for name, value := range q.Labels {
			if s.Labels[name] != value {
				return false
			}
		}
		avoided := slices.ContainsFunc(q.Avoid, func(a netip.AddrPort) bool { return slices.Contains(s.Addrs, a) })
		return !avoided && (q.Server == "" || q.Server == s.Name)
	}
	b.mu.Lock()
	s, ok := fleet.Choose(servers, func(s *fleet.Server) bool {
		_, known := b.key(s.Key)
		return known && suits(s)
	})
	key, _ := b.key(s.Key)
	if !ok {
		err = b.explain(servers, suits, failure)
	}
	b.mu.Unlock()
	if err != nil {
		return a, err
	}
	t, err := token.Issue(key, token.Claims{
		ClientID: q.Client, Expires: time.Now().Add(b.cfg.Lifetime), Servers: s.Addrs[:min(len(s.Addrs), token.MaxServers)],
		UserData: q.UserData, Route: s.Route,
	})
	return Answer{s.Name, s.Addrs[0], t, t.Expires()}, err
}

// explain returns why none of the servers accepts a player. failure is the error of the store. The
// caller holds the lock.
func (b *Backend) explain(servers []fleet.Server, suits func(*fleet.Server) bool, failure error) none {
	if failure != nil {
		return none{storeFails, fmt.Errorf("no server accepts players: the store of the fleet fails: %w", failure)}
	}
	suitable := 0
	for i := range servers {
		s := &servers[i]
		if !suits(s) {
			continue
		}
		if suitable++; b.state(s) == noKey {
			return none{noKey, fmt.Errorf("no server accepts players: %s has the key %s, but this backend has %s: "+
				"add its issuer key with --key, or replace the file and send SIGHUP", s.Name, s.Key, b.ids())}
		}
	}
	if suitable > 0 {
		return none{full, fmt.Errorf("no server accepts players: all %d that suit are full or drain", suitable)}
	}
	return none{noServer, fmt.Errorf("no server accepts players: none of the %d servers of the directory suits", len(servers))}
}

// mayLook reports whether a request has the game's secret, as a bearer token or as a password. If
// not, it answers the request.
func (b *Backend) mayLook(w http.ResponseWriter, r *http.Request) bool {
	if _, password, ok := r.BasicAuth(); ok {
		r.Header.Set("Authorization", "Bearer "+password)
	}
	if b.cfg.GameSecret != "" {
		w.Header().Set("WWW-Authenticate", `Basic realm="fleet"`)
	}
	if !web.Authorize(w, r, b.cfg.GameSecret) {
		return false
	}
	w.Header().Del("WWW-Authenticate")
	return true
}

func (b *Backend) servers(w http.ResponseWriter, r *http.Request) {
	if !b.mayLook(w, r) {
		return
	}
	servers, err := b.list(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(servers) // fails only if the client has disconnected
}

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"age":    func(t time.Time) string { return max(time.Since(t), 0).Round(time.Second).String() },
	"sorted": func(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) },
	"part": func(s fleet.Server) int {
		return min(100*s.Players/max(s.MaxPlayers, 1), 100)
	},
}).Parse(pageText))

func (b *Backend) page(w http.ResponseWriter, r *http.Request) {
	if !b.mayLook(w, r) {
		return
	}
	servers, err := b.list(r.Context())
	var view struct {
		Error             error
		Servers           []fleet.Server
		Players, Capacity int
		Draining, Full    int
		Keys              []string
		Missing           map[string]string // keys by server; a map that does not change
	}
	view.Error, view.Servers = err, servers
	for _, s := range servers {
		view.Players, view.Capacity = view.Players+s.Players, view.Capacity+s.MaxPlayers
		switch {
		case s.Draining:
			view.Draining++
		case s.Full():
			view.Full++
		}
	}
	b.mu.Lock()
	for _, k := range b.keys {
		view.Keys = append(view.Keys, k.ID().String())
	}
	view.Missing = b.missing
	b.mu.Unlock()
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	if err := page.Execute(w, view); err != nil {
		b.cfg.Log.Warn("page not written", "error", err)
	}
}
