// Package page serves a page that shows a running world: both sides of it, what the way down takes and how far it is off.
package page

import (
	"context"
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"github.com/uplink-rpc/uplink/examples/cubes/live"
	"github.com/uplink-rpc/uplink/examples/cubes/world"
)

//go:embed assets
var embedded embed.FS

const (
	// patience is how long a page may take to read a message.
	patience = 10 * time.Second
	// maxOrder is the longest message of a page.
	maxOrder = 1024
)

// Page serves one world. It does not ask who comes: see dashboard.Guard.
type Page struct {
	live *live.Live
	mux  *http.ServeMux
}

// New makes the page of a world.
func New(l *live.Live) *Page {
	assets, err := fs.Sub(embedded, "assets")
	if err != nil {
		panic(err) // the name is a constant
	}
	p := &Page{live: l, mux: http.NewServeMux()}
	p.mux.Handle("GET /", http.FileServerFS(assets))
	p.mux.HandleFunc("GET /stream", p.stream)
	return p
}

// ServeHTTP implements http.Handler.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache")
	p.mux.ServeHTTP(w, r)
}

// order is what a page asks for. What it leaves out stays.
type order struct {
	Keys     *uint8          `json:"keys"`
	Settings json.RawMessage `json:"settings"`
	Restart  bool            `json:"restart"`
}

// stream is the page's connection: pictures and figures come, orders go. Pages of another origin are refused.
func (p *Page) stream(w http.ResponseWriter, r *http.Request) {
	v := p.live.Look()
	if v == nil {
		http.Error(w, "too many look already: close a page", http.StatusServiceUnavailable)
		return
	}
	defer p.live.Leave(v)
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // it has answered
	}
	defer func() { _ = c.CloseNow() }()
	c.SetReadLimit(maxOrder)
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	go func() {
		defer stop()
		p.obey(ctx, c)
	}()
	p.tell(ctx, c, v)
}

// tell sends what there is to see until the page is gone or too slow.
func (p *Page) tell(ctx context.Context, c *websocket.Conn, v *live.Viewer) {
	for {
		select {
		case <-ctx.Done():
			return
		case m, ok := <-v.Messages:
			kind := websocket.MessageBinary
			if m.Text {
				kind = websocket.MessageText
			}
			if !ok || write(ctx, c, kind, m.Contents) != nil {
				return
			}
		}
	}
}

func write(ctx context.Context, c *websocket.Conn, kind websocket.MessageType, b []byte) error {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	return c.Write(ctx, kind, b)
}

// obey does what the page asks for, until it is gone. What is wrong with an order is told.
func (p *Page) obey(ctx context.Context, c *websocket.Conn) {
	for {
		_, b, err := c.Read(ctx)
		if err != nil {
			break
		}
		if err := p.do(b); err != nil {
			trouble, _ := json.Marshal(map[string]string{"trouble": err.Error()}) // always can be
			if write(ctx, c, websocket.MessageText, trouble) != nil {
				break
			}
		}
	}
	p.live.Steer(0) // nobody holds keys that are gone
}

func (p *Page) do(b []byte) error {
	var o order
	if err := json.Unmarshal(b, &o); err != nil {
		return err
	}
	if o.Keys != nil {
		p.live.Steer(world.Input(*o.Keys))
	}
	if o.Settings != nil {
		// Those that the page shows may be older than what another one, or itself, has asked for.
		if err := p.live.Change(func(s *live.Settings) error { return json.Unmarshal(o.Settings, s) }); err != nil {
			return err
		}
	}
	if o.Restart {
		return p.live.Restart()
	}
	return nil
}
