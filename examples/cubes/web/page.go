package web

import (
	"context"
	"embed"
	"encoding/binary"
	"encoding/json"
	"io/fs"
	"math"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"github.com/uplink-rpc/uplink/examples/cubes/world"
)

//go:embed assets
var embedded embed.FS

const (
	// writeTimeout is the timeout of a write to a page.
	writeTimeout = 10 * time.Second
	// maxRequest is the maximum size of a message from a page, in bytes.
	maxRequest = 1024
)

// Page serves the page of a Live. It does not authenticate anybody; see dashboard.Guard.
type Page struct {
	live *Live
	mux  *http.ServeMux
}

// NewPage returns the page of a world.
func NewPage(l *Live) *Page {
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

// request is a message from a page. Absent fields change nothing.
type request struct {
	Keys     *uint8          `json:"keys"`
	Settings json.RawMessage `json:"settings"`
	Restart  bool            `json:"restart"`
}

// stream serves the WebSocket of a page. Other origins are rejected.
func (p *Page) stream(w http.ResponseWriter, r *http.Request) {
	v := p.live.AddViewer()
	if v == nil {
		http.Error(w, "too many viewers: close a page", http.StatusServiceUnavailable)
		return
	}
	defer p.live.RemoveViewer(v)
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // Accept has replied
	}
	defer func() { _ = c.CloseNow() }()
	c.SetReadLimit(maxRequest)
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	go func() {
		defer stop()
		p.receive(ctx, c)
	}()
	p.send(ctx, c, v)
}

// send sends the messages for a viewer until the page closes or is too slow.
func (p *Page) send(ctx context.Context, c *websocket.Conn, v *Viewer) {
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
	ctx, stop := context.WithTimeout(ctx, writeTimeout)
	defer stop()
	return c.Write(ctx, kind, b)
}

// receive handles requests until the page closes, and replies to those that fail with the error.
func (p *Page) receive(ctx context.Context, c *websocket.Conn) {
	for {
		_, b, err := c.Read(ctx)
		if err != nil {
			break
		}
		if err := p.handle(b); err != nil {
			trouble, _ := json.Marshal(map[string]string{"trouble": err.Error()}) // never fails
			if write(ctx, c, websocket.MessageText, trouble) != nil {
				break
			}
		}
	}
	p.live.Steer(0) // release all keys
}

func (p *Page) handle(b []byte) error {
	var o request
	if err := json.Unmarshal(b, &o); err != nil {
		return err
	}
	if o.Keys != nil {
		p.live.Steer(world.Input(*o.Keys))
	}
	if o.Settings != nil {
		// Fields that the request leaves out keep their current values: those of the page may be
		// outdated.
		if err := p.live.Change(func(s *Settings) error { return json.Unmarshal(o.Settings, s) }); err != nil {
			return err
		}
	}
	if o.Restart {
		return p.live.Restart()
	}
	return nil
}

// drawnCube is a cube as pages receive it.
type drawnCube struct {
	pose  [7]int16 // position in millimeters, and orientation, where 32767 is 1
	flags uint8    // 1: interacting; 2: unseen
}

// picture holds the cubes that were sent last for both ends, the server's first.
type picture [2][]drawnCube

func newPicture(count int) picture {
	return picture{make([]drawnCube, count), make([]drawnCube, count)}
}

func drawCube(s *world.Visual) drawnCube {
	if s.Unseen {
		return drawnCube{flags: 2}
	}
	p, q := &s.Position, &s.Orientation
	out := drawnCube{pose: [7]int16{
		scale(p.X, 1000), scale(p.Y, 1000), scale(p.Z, 1000),
		scale(q.X, 32767), scale(q.Y, 32767), scale(q.Z, 32767), scale(q.W, 32767),
	}}
	if s.Interacting {
		out.flags = 1
	}
	return out
}

func scale(v, by float64) int16 {
	return int16(max(math.MinInt16, min(math.MaxInt16, math.Round(v*by))))
}

// update replaces end i of the picture, and appends the number of changed cubes and each.
func (p *picture) update(dst []byte, i int, cubes func(n int) *world.Visual) []byte {
	at := len(dst)
	dst = append(dst, 0, 0)
	count := 0
	for n := range p[i] {
		s := drawCube(cubes(n))
		if s == p[i][n] {
			continue
		}
		p[i][n] = s
		dst = s.append(dst, n)
		count++
	}
	binary.LittleEndian.PutUint16(dst[at:], uint16(count))
	return dst
}

func (s *drawnCube) append(dst []byte, n int) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, uint16(n))
	for _, v := range s.pose {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(v))
	}
	return append(dst, s.flags)
}

func (p *picture) all(dst []byte) []byte {
	for i := range p {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(len(p[i])))
		for n := range p[i] {
			dst = p[i][n].append(dst, n)
		}
	}
	return dst
}

const (
	// MaxViewers is the maximum number of concurrent viewers.
	MaxViewers = 16
	// backlog is the number of messages queued for a viewer.
	backlog = 120
	// figuresInterval is the number of ticks between two messages with figures.
	figuresInterval = world.TickRate / 2
)

// Message is a message for a viewer: a binary picture, or figures in JSON.
type Message struct {
	Text     bool
	Contents []byte
}

// Viewer receives the pictures and figures of a Live.
type Viewer struct {
	// Messages is closed after RemoveViewer or if the viewer is too slow.
	Messages  chan Message
	needsFull bool // the next picture must be complete
}

// AddViewer returns a new viewer, or nil if there are MaxViewers already. The caller must call
// RemoveViewer.
func (l *Live) AddViewer() *Viewer {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.viewers) == MaxViewers {
		return nil
	}
	v := &Viewer{Messages: make(chan Message, backlog), needsFull: true}
	l.viewers[v] = struct{}{}
	return v
}

// RemoveViewer removes a viewer. It may be called more than once.
func (l *Live) RemoveViewer(v *Viewer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(v)
}

func (l *Live) drop(v *Viewer) {
	if _, in := l.viewers[v]; in {
		delete(l.viewers, v)
		close(v.Messages)
	}
}

// Figures are the measurements of the last half second; see session.Meter.
type Figures struct {
	Kbits    float64 `json:"kbits"`
	Packets  float64 `json:"packets"`  // datagrams per second
	Error    float64 `json:"error"`    // cm, mean
	ErrorP99 float64 `json:"errorP99"` // cm
	Turn     float64 `json:"turn"`     // degrees
	Pops     int     `json:"pops"`
	Delay    float64 `json:"delay"`   // ms
	Updates  float64 `json:"updates"` // cubes per second
	Wait     int     `json:"wait"`    // ticks, longest time between two updates of a cube
	Moving   int     `json:"moving"`
	RTT      float64 `json:"rtt"` // ms, measured by the client
	// UpKbits is the bandwidth that the client uses, in kbit/s.
	UpKbits  float64  `json:"upKbits"`
	Settings Settings `json:"settings"`
}

// broadcast sends the changed cubes to all viewers, and figures every figuresInterval ticks.
func (l *Live) broadcast() {
	s := l.session
	var server world.Visual
	left := func(n int) *world.Visual {
		server.FromBody(&s.Bodies()[n])
		return &server
	}
	right := func(n int) *world.Visual {
		if !s.Drawing {
			return left(n)
		}
		return &s.Drawn[n]
	}
	picture := l.shown.update(nil, 0, left)
	picture = l.shown.update(picture, 1, right)
	var whole []byte
	for v := range l.viewers {
		if !v.needsFull {
			l.send(v, Message{Contents: picture})
			continue
		}
		if v.needsFull = false; whole == nil {
			whole = l.shown.all(nil)
		}
		l.send(v, Message{Contents: whole})
	}
	if l.session.Meter.Ticks >= figuresInterval {
		figures := Message{Text: true, Contents: l.figures()}
		for v := range l.viewers {
			l.send(v, figures)
		}
		l.session.Meter.Reset()
	}
}

// send queues a message for a viewer. A viewer whose queue is full is removed; its page reconnects.
func (l *Live) send(v *Viewer, m Message) {
	select {
	case v.Messages <- m:
	default:
		l.drop(v)
	}
}

func (l *Live) figures() []byte {
	m, up := &l.session.Meter, l.steering.conn.Stats()
	const cm = 100
	f := Figures{
		Kbits: m.Kbits(), Packets: float64(m.Datagrams) / m.Seconds(),
		Error: cm * m.Position.Mean(), ErrorP99: cm * m.Position.Quantile(0.99), Turn: m.Turn.Mean(),
		Pops: m.Pops, Delay: m.MeanDelay().Seconds() * 1000, Updates: float64(m.Updates) / m.Seconds(), Wait: m.Wait,
		RTT: up.RTT.Seconds() * 1000, UpKbits: up.SentBitsPerSecond / 1000, Settings: l.settings,
	}
	for i := range l.session.Bodies() {
		if l.session.Bodies()[i].Moving() {
			f.Moving++
		}
	}
	b, err := json.Marshal(f)
	if err != nil {
		panic(err) // JSON cannot represent infinities or NaN
	}
	return b
}
