// Package backend is the HTTP service of "uplink backend": it issues connect tokens for the servers
// of a fleet, and shows them.
package backend

import (
	"context"
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
	cfg Config
	mux *http.ServeMux

	mu   sync.Mutex
	keys []token.IssuerKey
}

// New returns a Backend that issues tokens with these keys. The first key is for servers that
// announce no key.
func New(cfg Config, keys []token.IssuerKey) *Backend {
	b := &Backend{cfg: cfg, mux: http.NewServeMux(), keys: keys}
	b.mux.Handle("/fleet/", http.StripPrefix("/fleet", httpstore.Handler(cfg.Store, cfg.FleetSecret)))
	b.mux.HandleFunc("POST /token", b.issue)
	b.mux.HandleFunc("GET /servers", b.servers)
	b.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	b.mux.HandleFunc("GET /{$}", b.page)
	return b
}

// SetKeys replaces the keys.
func (b *Backend) SetKeys(keys []token.IssuerKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keys = keys
}

// key returns the key for tokens of a server that announces the given key id.
func (b *Backend) key(id string) (token.IssuerKey, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
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

func (b *Backend) issue(w http.ResponseWriter, r *http.Request) {
	if !web.Authorize(w, r, b.cfg.GameSecret) {
		return
	}
	var q Request
	d := json.NewDecoder(web.Body(w, r, 4096))
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a, err := b.choose(r, &q)
	switch {
	case errors.Is(err, errNoServer):
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	case err != nil:
		b.cfg.Log.Error("token not issued", "client", q.Client, "error", err)
		http.Error(w, "no token can be issued", http.StatusInternalServerError)
	default:
		b.cfg.Log.Debug("token issued", "client", q.Client, "server", a.Name, "token", a.Token.ID())
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store") // the token is a secret
		_ = json.NewEncoder(w).Encode(a)            // fails only if the client has disconnected
	}
}

// storeTimeout limits the time of a call of the store.
const storeTimeout = 5 * time.Second

var errNoServer = errors.New("no server accepts players")

// list returns the servers of the directory.
func (b *Backend) list(r *http.Request) ([]fleet.Server, error) {
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	return b.cfg.Store.Servers(ctx)
}

// choose issues a token for a server.
func (b *Backend) choose(r *http.Request, q *Request) (a Answer, err error) {
	servers, err := b.list(r)
	if err != nil {
		return a, err
	}
	var key token.IssuerKey
	s, ok := fleet.Choose(servers, func(s *fleet.Server) bool {
		for name, value := range q.Labels {
			if s.Labels[name] != value {
				return false
			}
		}
		_, known := b.key(s.Key)
		known = known && !slices.ContainsFunc(q.Avoid, func(a netip.AddrPort) bool { return slices.Contains(s.Addrs, a) })
		return known && (q.Server == "" || q.Server == s.Name)
	})
	if !ok {
		return a, errNoServer
	}
	key, _ = b.key(s.Key)
	t, err := token.Issue(key, token.Claims{
		ClientID: q.Client, Expires: time.Now().Add(b.cfg.Lifetime), Servers: s.Addrs[:min(len(s.Addrs), token.MaxServers)],
		UserData: q.UserData, Route: s.Route,
	})
	return Answer{s.Name, s.Addrs[0], t, t.Expires()}, err
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
	servers, err := b.list(r)
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
	servers, err := b.list(r)
	var view struct {
		Error             error
		Servers           []fleet.Server
		Players, Capacity int
		Draining, Full    int
		Keys              []string
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
	b.mu.Unlock()
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	if err := page.Execute(w, view); err != nil {
		b.cfg.Log.Warn("page not written", "error", err)
	}
}
