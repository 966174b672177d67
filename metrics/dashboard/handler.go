package dashboard

import (
	"bytes"
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"
	"strconv"
	"time"
)

//go:embed assets
var assets embed.FS

// patience is how long a page may take to read an event.
const patience = 20 * time.Second

func (d *Dashboard) routes() {
	d.mux = http.NewServeMux()
	d.mux.HandleFunc("GET /{$}", file("assets/index.html"))
	d.mux.HandleFunc("GET /favicon.ico", file("assets/icon.svg")) // browsers ask unbidden
	d.mux.HandleFunc("GET /events", d.events)
	d.mux.HandleFunc("GET /player", d.player)
	d.mux.HandleFunc("GET /field", d.field)
	_ = fs.WalkDir(assets, "assets", func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			d.mux.HandleFunc("GET /"+path, file(path))
		}
		return err
	})
}

// ServeHTTP implements http.Handler. The page asks for all by relative paths: it can lie in
// any directory, with http.StripPrefix.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	d.mux.ServeHTTP(w, r)
}

// file serves one of the embedded files.
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

// hello is the first event of a page.
type hello struct {
	Begun     string `json:"begun"`
	Title     string `json:"title"`
	Hint      string `json:"hint,omitempty"`
	Extension string `json:"extension,omitempty"`
	Metrics   string `json:"metrics,omitempty"`
	ReadOnly  bool   `json:"read_only"`
	Span      int    `json:"span"`   // samples of the history
	Recent    int    `json:"recent"` // seconds of players' figures
}

// events sends a page what happens as long as it is open.
func (d *Dashboard) events(w http.ResponseWriter, r *http.Request) {
	p := d.hub.open()
	if p == nil {
		http.Error(w, "too many pages are open, or the server ends: close one", http.StatusServiceUnavailable)
		return
	}
	defer d.hub.leave(p)
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	send := func(b []byte) bool {
		_ = control.SetWriteDeadline(time.Now().Add(patience)) // where there are deadlines
		_, err := w.Write(b)
		return err == nil && control.Flush() == nil
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

// greeting is what a page gets first: who this is, and the history.
func (d *Dashboard) greeting() []byte {
	c := &d.cfg
	out := event("hello", marshal(hello{d.begun, c.Title, c.Hint, c.Extension, c.Metrics, c.ReadOnly, span, recent}))
	d.mu.Lock()
	defer d.mu.Unlock()
	history := append([]byte{'['}, bytes.Join(d.history, []byte{','})...)
	return append(out, event("history", append(history, ']'))...)
}

// state is what the server counted since it began, with its players and what the bits go to.
// It is called with the lock held.
func (d *Dashboard) state(o *observation) []byte {
	_, unlisted := d.players.listed()
	b := marshal(struct {
		At int64 `json:"t"`
		totals
		RPCs     []flow    `json:"rpcs"`
		Bits     []profile `json:"profiles"`
		Unlisted int       `json:"unlisted"`
	}{o.at.UnixMilli(), o.totals, o.flows, d.profile.all, unlisted})
	b = append(b[:len(b)-1], `,"list":`...)
	return append(d.players.appendJSON(b), '}')
}

// player gives one player's timeline.
func (d *Dashboard) player(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.ParseUint(r.URL.Query().Get("id"), 10, 64)
	if err != nil {
		http.Error(w, "id: want the number of a player's session", http.StatusBadRequest)
		return
	}
	d.mu.Lock()
	t := d.players.timeline(id)
	d.mu.Unlock()
	if t == nil {
		http.Error(w, "no such player is connected", http.StatusNotFound)
		return
	}
	reply(w, t)
}

// field gives what one field's bits go to.
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
	if f == nil {
		http.Error(w, "no such field was measured", http.StatusNotFound)
		return
	}
	reply(w, f)
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(marshal(v)) // or whoever asked is gone
}

// marshal encodes what always can be.
func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
