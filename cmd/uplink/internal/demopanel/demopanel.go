// Package demopanel lets a visitor of the demo change its link, codec, preset and redundancy while
// it runs, and see one of its players as sent and as the dedicated server rebuilt it: an HTTP
// handler, and a panel for a page.
package demopanel

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"
)

//go:embed panel
var embedded embed.FS

// Game is the running game. Its methods are safe for concurrent use.
type Game interface {
	// Settings returns the settings in use, or being applied.
	Settings() Settings
	// Change applies valid settings. Slow parts of the change continue after it has returned.
	Change(Settings) error
	// Traffic returns the latest measurement.
	Traffic() Traffic
}

// Controls is the controls of one game. It is safe for concurrent use.
type Controls struct {
	game  Game
	stage *Stage
	mu    sync.Mutex // held while settings change
}

// New returns the controls of a game whose actors are shown on stage.
func New(game Game, stage *Stage) *Controls {
	return &Controls{game: game, stage: stage}
}

// Handler serves these paths under /demo/. Use it behind a dashboard.Guard, which authorizes
// requests.
//
//	GET  state       settings, their limits, what is measured
//	POST state       changes settings
//	GET  view        one actor as sent and as rebuilt, and the state each second, as server-sent events
//	GET  panel.js    a module whose mount(section, {readOnly}) shows all this in a page (see dashboard.Config); its parts lie beside it
//	GET  panel.css   the panel's style
func (l *Controls) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /demo/state", l.getState)
	mux.HandleFunc("POST /demo/state", l.postState)
	mux.HandleFunc("GET /demo/view", l.view)
	mux.Handle("GET /demo/", http.StripPrefix("/demo", http.FileServerFS(Panel())))
	return mux
}

// Panel contains the files of the panel: panel.js, panel.css and the files that they load.
func Panel() fs.FS {
	files, _ := fs.Sub(embedded, "panel") // the name is valid
	return files
}

// maxChange is the longest body of a change in bytes.
const maxChange = 4 << 10

// Traffic contains the figures that the panel shows in addition to those of the page.
type Traffic struct {
	// Calls is the rate of calls in the last Seconds.
	Seconds float64 `json:"seconds"`
	Calls   float64 `json:"calls_per_s"`
	// Redundancy is the current maximum of redundant frames per payload over all clients.
	Redundancy int `json:"redundancy"`
	// Mismatches counts the frames since the start that differ from the recording.
	Mismatches uint64 `json:"mismatches"`
	// Switched is the number of Clients that use the selected codec and preset.
	Switched int `json:"switched"`
	Clients  int `json:"clients"`
}

// Actor is a recorded player.
type Actor struct {
	Name string `json:"name"`
	RPC  string `json:"rpc"`
}

type state struct {
	Settings values  `json:"settings"`
	Limits   Limits  `json:"limits"`
	Traffic  Traffic `json:"traffic"`
	Actors   []Actor `json:"actors"`
}

func (l *Controls) state() state {
	return state{
		Settings: l.game.Settings().values(), Limits: limits,
		Traffic: l.game.Traffic(), Actors: l.stage.Actors(),
	}
}

func (l *Controls) getState(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(l.state()) // fails only if the client has disconnected
}

func (l *Controls) postState(w http.ResponseWriter, r *http.Request) {
	v, err := parseChange(http.MaxBytesReader(w, r.Body, maxChange))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		http.Error(w, "the body is too large: want at most 4096 bytes", http.StatusRequestEntityTooLarge)
		return
	}
	if err == nil {
		err = l.change(v)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	l.getState(w, r)
}

// change serializes changes.
func (l *Controls) change(v values) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, err := v.apply(l.game.Settings())
	if err != nil {
		return err
	}
	return l.game.Change(s)
}

const (
	// viewEvery is the time between two events of a view.
	viewEvery = time.Second / 30
	// stateEvery is the time between two events with the state.
	stateEvery = time.Second
	// patience is the maximum time for a viewer to read an event.
	patience = 10 * time.Second
)

type introduction struct {
	Actor int     `json:"actor"`
	Name  string  `json:"name"`
	RPC   string  `json:"rpc"`
	Rate  float64 `json:"rate_hz"`
	// Moves reports whether poses have velocities.
	Moves bool `json:"moves"`
	// Path is the recorded path, in x and y.
	Path [][2]number `json:"path"`
}

// poses contains the calls sent and decoded since the previous event.
type poses struct {
	// Each pose has the number of the call, x, y, heading, and velocity in x and y. A decoded frame
	// has a further number: 1 if it was redundant, otherwise 0.
	Sent    [][]number `json:"sent"`
	Rebuilt [][]number `json:"rebuilt"`
}

// number is a number with three decimals in JSON.
type number float64

// MarshalJSON implements json.Marshaler.
func (v number) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, math.Round(float64(v)*1000)/1000, 'f', -1, 64), nil
}

// view sends one actor's poses and the state until the viewer disconnects.
func (l *Controls) view(w http.ResponseWriter, r *http.Request) {
	i, err := strconv.Atoi(r.URL.Query().Get("actor"))
	if most := len(l.stage.actors) - 1; err != nil || i < 0 || i > most {
		http.Error(w, fmt.Sprintf("actor is %q: want a number from 0 to %d", r.URL.Query().Get("actor"), most), http.StatusBadRequest)
		return
	}
	v := l.stage.look(i)
	if v == nil {
		w.Header().Set("Retry-After", "10")
		http.Error(w, fmt.Sprintf("%d viewers are connected: close a page of the demo", maxViewers), http.StatusServiceUnavailable)
		return
	}
	defer l.stage.leave(v)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	e := events{w: w, control: http.NewResponseController(w)}
	e.send("hello", v.introduce(i))
	l.show(r, v, &e)
}

func (l *Controls) show(r *http.Request, v *viewer, e *events) {
	tick := time.NewTicker(viewEvery)
	defer tick.Stop()
	var sent, rebuilt []seen
	var told time.Time
	for e.err == nil {
		select {
		case <-r.Context().Done():
			return
		case now := <-tick.C:
			if now.Sub(told) >= stateEvery {
				told = now
				e.send("state", l.state())
			}
		}
		if sent, rebuilt = v.take(sent[:0], rebuilt[:0]); len(sent)+len(rebuilt) > 0 {
			e.send("poses", poses{rows(sent, false), rows(rebuilt, true)})
		}
	}
}

func (v *viewer) introduce(i int) introduction {
	t := v.actor.trace
	in := introduction{Actor: i, Name: t.Name, RPC: t.Schema.RPC(), Rate: t.Schema.RateHz(), Moves: v.actor.poser.Moves()}
	for _, p := range v.actor.path() {
		in.Path = append(in.Path, [2]number{number(p.X), number(p.Y)})
	}
	return in
}

func rows(all []seen, rebuilt bool) [][]number {
	out := make([][]number, len(all))
	for i, s := range all {
		out[i] = []number{number(s.n), number(s.X), number(s.Y), number(s.Heading), number(s.VX), number(s.VY)}
		switch {
		case rebuilt && s.older:
			out[i] = append(out[i], 1)
		case rebuilt:
			out[i] = append(out[i], 0)
		}
	}
	return out
}

type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
	err     error // first error
}

func (e *events) send(name string, data any) {
	if e.err != nil {
		return
	}
	b, err := json.Marshal(data) // contains no line break
	if err == nil {
		_ = e.control.SetWriteDeadline(time.Now().Add(patience)) // fails if the writer supports no deadlines
		_, err = fmt.Fprintf(e.w, "event: %s\ndata: %s\n\n", name, b)
	}
	if err == nil {
		err = e.control.Flush()
	}
	e.err = err
}
