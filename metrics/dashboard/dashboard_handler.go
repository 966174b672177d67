package dashboard

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"strconv"
	"time"

	"github.com/uplink-rpc/uplink/internal/web"
)

//go:embed assets
var assets embed.FS

var errNotGuarded = errors.New("the dashboard is served without access control: wrap its handler with a dashboard.Guard, " +
	"or set Open in dashboard.Config if another handler authorizes requests")

func (d *Dashboard) routes() {
	d.mux = http.NewServeMux()
	d.mux.HandleFunc("GET /{$}", file("assets/index.html"))
	d.mux.HandleFunc("GET /favicon.ico", file("assets/icon.svg")) // browsers request it
	d.mux.HandleFunc("GET /events", d.events)
	d.mux.HandleFunc("GET /players", d.list)
	d.mux.HandleFunc("GET /player", d.player)
	d.mux.HandleFunc("GET /happened", d.happened)
	d.mux.HandleFunc("GET /field", d.field)
	_ = fs.WalkDir(assets, "assets", func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			d.mux.HandleFunc("GET /"+path, file(path))
		}
		return err
	})
}

// ServeHTTP implements [http.Handler]. The page uses relative paths, so it can be served in any
// directory with [http.StripPrefix].
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if !d.cfg.Open && r.Context().Value(passed{}) == nil {
		web.Refuse(w, http.StatusForbidden, errNotGuarded)
		return
	}
	d.mux.ServeHTTP(w, r)
}

func file(path string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b, err := assets.ReadFile(path)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Cache-Control", "no-cache")
		http.ServeContent(w, r, path, time.Time{}, bytes.NewReader(b))
	}
}

type hello struct {
	Begun     string `json:"begun"`
	Title     string `json:"title"`
	Hint      string `json:"hint,omitempty"`
	Extension string `json:"extension,omitempty"`
	Metrics   string `json:"metrics,omitempty"`
	ReadOnly  bool   `json:"read_only"`
	Sent      bool   `json:"sent"`   // bit rates are those of data that clients sent
	Span      int    `json:"span"`   // samples of the history
	Recent    int    `json:"recent"` // seconds over which the list of players averages
}

// events sends events to a page while it is open.
func (d *Dashboard) events(w http.ResponseWriter, r *http.Request) {
	p := d.hub.open()
	if p == nil {
		http.Error(w, "too many pages are open, or the server stops: close one", http.StatusServiceUnavailable)
		return
	}
	defer d.hub.leave(p)
	w.Header().Set("Content-Type", "text/event-stream")
	stream := web.NewStream(w)
	send := func(b []byte) bool {
		_, err := stream.Write(b)
		return err == nil
	}
	if !send(d.greeting()) {
		return
	}
	d.hub.wake()
	for {
		select {
		case <-r.Context().Done():
			return
		case b, ok := <-p.events:
			if !ok || !send(b) {
				return
			}
		}
	}
}

// greeting returns the first events of a page: hello and the history.
func (d *Dashboard) greeting() []byte {
	c := &d.cfg
	out := event("hello", marshal(hello{d.begun, c.Title, c.Hint, c.Extension, c.Metrics, c.ReadOnly, c.Sent != nil, span, recent}))
	d.mu.Lock()
	defer d.mu.Unlock()
	history := append([]byte{'['}, bytes.Join(d.history, []byte{','})...)
	return append(out, event("history", append(history, ']'))...)
}

// state returns the counts since the server started and the profile. The caller holds the lock.
func (d *Dashboard) state(o *observation) []byte {
	return marshal(struct {
		At int64 `json:"t"`
		totals
		RPCs    []flow    `json:"rpcs"`
		Worlds  []world   `json:"worlds,omitempty"`
		Buffers []buffers `json:"buffers,omitempty"`
		Bits    []profile `json:"profiles"`
	}{o.at.UnixMilli(), o.totals, o.flows, o.worlds, o.buffers, d.profile.all})
}

// list sends the players whom a page shows.
func (d *Dashboard) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	rows, err := strconv.Atoi(q.Get("n"))
	sort, known := columns[cmp.Or(q.Get("sort"), "worst")]
	if err != nil || rows < 1 || rows > maxRows || !known {
		http.Error(w, "n: want 1 to "+strconv.Itoa(maxRows)+"; sort: want the name of a column", http.StatusBadRequest)
		return
	}
	d.mu.Lock()
	l := d.players.list(listing{rows: rows, sort: sort, ascending: q.Get("order") == "ascending", find: q.Get("find"), world: q.Get("world")})
	d.mu.Unlock()
	reply(w, l, "")
}

// happened sends the newest events of sessions.
func (d *Dashboard) happened(w http.ResponseWriter, r *http.Request) {
	rows, err := strconv.Atoi(r.URL.Query().Get("n"))
	if err != nil || rows < 1 {
		http.Error(w, "n: want the number of events", http.StatusBadRequest)
		return
	}
	d.mu.Lock()
	names := d.players.names()
	d.mu.Unlock()
	l := newEvents(d.src.Events(), rows, names)
	reply(w, &l, "")
}

func (d *Dashboard) player(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.ParseUint(r.URL.Query().Get("id"), 10, 64)
	if err != nil {
		http.Error(w, "id: want the number of a player's session", http.StatusBadRequest)
		return
	}
	d.mu.Lock()
	t := d.players.timeline(id, d.buffered)
	d.mu.Unlock()
	reply(w, t, "no such player is connected")
}

func (d *Dashboard) field(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	i, err := strconv.Atoi(q.Get("field"))
	if err != nil {
		http.Error(w, "field: want its index in the schema", http.StatusBadRequest)
		return
	}
	d.mu.Lock()
	f := d.profile.field(q.Get("rpc"), i)
	d.mu.Unlock()
	reply(w, f, "no such field was measured")
}

// reply sends v as JSON, or the text missing if it is nil.
func reply[T any](w http.ResponseWriter, v *T, missing string) {
	if v == nil {
		http.Error(w, missing, http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(marshal(v)) // fails if the client has disconnected
}

// marshal encodes a value that has no error.
func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
