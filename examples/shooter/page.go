package main

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/examples/shooter/internal/game"
	"github.com/uplink-rpc/uplink/schema"
)

//go:embed assets
var embedded embed.FS

const (
	maxViewers = 8
	maxQueue   = 60 // pictures that wait for a page
	maxInput   = 4096
	maxShots   = 4 // maximum number of shots that wait for their ticks
)

// newPage returns the page of a match. It does not authorize requests; see dashboard.Guard.
func newPage(m *match) http.Handler {
	assets, err := fs.Sub(embedded, "assets")
	if err != nil {
		panic(err) // the name is a constant
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(assets))
	mux.HandleFunc("GET /arena", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(game.Blocks) })
	mux.HandleFunc("GET /pictures", m.pictures)
	mux.HandleFunc("POST /input", m.receive)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'")
		w.Header().Set("Cache-Control", "no-cache")
		mux.ServeHTTP(w, r)
	})
}

// pictures serves the pictures of your client as server-sent events.
func (m *match) pictures(w http.ResponseWriter, r *http.Request) {
	viewer := make(chan []byte, maxQueue)
	m.mu.Lock()
	full := len(m.viewers) == maxViewers
	if !full {
		m.viewers[viewer] = true
	}
	m.mu.Unlock()
	if full {
		http.Error(w, "too many viewers: close a page", http.StatusServiceUnavailable)
		return
	}
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.viewers, viewer)
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	for {
		select {
		case <-r.Context().Done():
			return
		case b := <-viewer:
			_ = out.SetWriteDeadline(time.Now().Add(10 * time.Second))
			if _, err := fmt.Fprintf(w, "data: %s\n\n", b); err != nil || out.Flush() != nil {
				return
			}
		}
	}
}

// message is the data that a page receives for each tick.
type message struct {
	N       uint64      `json:"n"`
	Eye     [3]float64  `json:"eye"`
	Look    [2]float64  `json:"look"` // yaw and pitch
	Players []ball      `json:"players"`
	Shots   []game.Shot `json:"shots,omitempty"`
	Figures *figures    `json:"figures,omitempty"`
}

type ball struct {
	Name  string     `json:"name"`
	At    [3]float64 `json:"at"`
	Look  [2]float64 `json:"look"`
	Armed bool       `json:"armed"`
	Out   bool       `json:"out"`
	Score uint16     `json:"score"`
}

func coordinates(v schema.Vec3) [3]float64 {
	return [3]float64{math.Round(v.X*1000) / 1000, math.Round(v.Y*1000) / 1000, math.Round(v.Z*1000) / 1000}
}

// show sends a picture to all pages. A page that is too slow misses some.
func (m *match) show(p *game.Picture, l game.Look) {
	if len(m.viewers) == 0 {
		return
	}
	out := message{N: p.N, Eye: coordinates(p.Eye), Look: [2]float64{float64(l.Yaw), float64(l.Pitch)}, Shots: p.Shots}
	for i := range p.Objects {
		o := &p.Objects[i]
		id, _ := client.SplitID(p.IDs[i])
		name := fmt.Sprint("player ", id)
		if id == p.ID {
			name = "you"
		}
		out.Players = append(out.Players, ball{name, coordinates(o.Position), [2]float64{float64(o.Yaw), float64(o.Pitch)}, o.Armed, o.Out, o.Score})
	}
	if p.N%(game.TickHz/2) == 0 {
		f := m.figures()
		out.Figures = &f
	}
	b, err := json.Marshal(out)
	if err != nil {
		panic(err) // no value of a picture is infinite
	}
	for v := range m.viewers {
		select {
		case v <- b:
		default:
		}
	}
}

// figures are the figures that the page shows besides the picture.
type figures struct {
	Auto bool `json:"auto"`
	Link link `json:"link"`
	// RTT in ms, fraction of datagrams lost, and kbit/s with all headers down to IP, as your client
	// measures them.
	RTT  float64 `json:"rtt"`
	Loss float64 `json:"loss"`
	Up   float64 `json:"up"`
	Down float64 `json:"down"`
	// Corrections is the number of corrections of more than 5 cm since the start, per second and
	// client.
	Corrections float64 `json:"corrections"`
	Largest     float64 `json:"largest"` // cm
	// Shots is the number of decided shots of all clients. Agreed is the number of those with the
	// same target as at the client, Close the number of others within 5 cm of an edge of the
	// target.
	Shots  int `json:"shots"`
	Agreed int `json:"agreed"`
	Close  int `json:"close"`
}

func (m *match) figures() figures {
	st := m.you.Stats()
	f := figures{
		Auto: m.auto, Link: m.link, RTT: st.RTT.Seconds() * 1000, Loss: st.Loss,
		Up: st.SentBitsPerSecond / 1000, Down: st.ReceivedBitsPerSecond / 1000,
	}
	var corrections, inputs uint64
	for _, c := range m.counts {
		corrections, inputs = corrections+c.Corrections, inputs+c.Inputs
		f.Shots, f.Agreed, f.Close = f.Shots+c.Shots, f.Agreed+c.Agreed, f.Close+c.Close
		f.Largest = max(f.Largest, 100*c.Largest)
	}
	f.Corrections = float64(corrections) / max(1, float64(inputs)/game.TickHz)
	return f
}

// order is a message from a page. Absent fields change nothing.
type order struct {
	Auto *bool `json:"auto"`
	Link *link `json:"link"`
	Held *struct {
		Keys  uint8        `json:"keys"`
		Yaw   schema.Angle `json:"yaw"`
		Pitch schema.Angle `json:"pitch"`
		// Fire is the number of the picture at which you fired, or 0.
		Fire uint64 `json:"fire"`
	} `json:"held"`
}

// receive handles the orders of a page.
func (m *match) receive(w http.ResponseWriter, r *http.Request) {
	var o order
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxInput)).Decode(&o)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil && o.Link != nil {
		half, bad := o.Link.half()
		if err = bad; err == nil {
			m.link = *o.Link
			err = m.network.Set(half, half)
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if o.Auto != nil {
		m.auto = *o.Auto
	}
	if h := o.Held; h != nil {
		m.held = game.Input{Keys: h.Keys & 31, Look: game.Look{Yaw: h.Yaw, Pitch: max(-90, min(90, h.Pitch))}}
		if h.Fire != 0 && len(m.shots) < maxShots {
			shot := m.held
			shot.Fire, shot.Picture = true, h.Fire
			m.shots = append(m.shots, shot)
		}
	}
	w.WriteHeader(http.StatusNoContent)
}
