package lab

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

const (
	// viewEvery is the time between two events of a view.
	viewEvery = time.Second / 30
	// stateEvery is the time between two events with the state.
	stateEvery = time.Second
	// patience is how long a viewer may take to read an event.
	patience = 10 * time.Second
)

// introduction is the first event of a view.
type introduction struct {
	Actor int     `json:"actor"`
	Name  string  `json:"name"`
	RPC   string  `json:"rpc"`
	Rate  float64 `json:"rate_hz"`
	// Moves says that poses have velocities.
	Moves bool `json:"moves"`
	// Path is where the recording leads, in x and y.
	Path [][2]number `json:"path"`
}

// poses is what was sent and rebuilt since the last such event.
type poses struct {
	// Each is the number of the call, x, y, heading, and velocity in x and y; of a frame that was rebuilt then 1 if it
	// came with a newer one, else 0.
	Sent    [][]number `json:"sent"`
	Rebuilt [][]number `json:"rebuilt"`
}

// number is written with few digits: a page needs no more.
type number float64

// MarshalJSON implements json.Marshaler.
func (v number) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, math.Round(float64(v)*1000)/1000, 'f', -1, 64), nil
}

// view sends one actor's poses and the state until the viewer goes.
func (l *Lab) view(w http.ResponseWriter, r *http.Request) {
	i, err := strconv.Atoi(r.URL.Query().Get("actor"))
	if most := len(l.stage.actors) - 1; err != nil || i < 0 || i > most {
		http.Error(w, fmt.Sprintf("actor is %q: want a number from 0 to %d", r.URL.Query().Get("actor"), most), http.StatusBadRequest)
		return
	}
	v := l.stage.look(i)
	if v == nil {
		w.Header().Set("Retry-After", "10")
		http.Error(w, fmt.Sprintf("%d look already: close a page that shows the demo", maxViewers), http.StatusServiceUnavailable)
		return
	}
	defer l.stage.leave(v)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	e := events{w: w, control: http.NewResponseController(w)}
	e.send("hello", v.introduce(i))
	l.show(r, v, &e)
}

// show sends events until one of them fails or the viewer goes.
func (l *Lab) show(r *http.Request, v *viewer, e *events) {
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
		if rebuilt {
			out[i] = append(out[i], older(s.older))
		}
	}
	return out
}

func older(is bool) number {
	if is {
		return 1
	}
	return 0
}

// events is a stream of server-sent events.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
	err     error // the first
}

func (e *events) send(name string, data any) {
	if e.err != nil {
		return
	}
	b, err := json.Marshal(data) // which has no line break
	if err != nil {
		e.err = err
		return
	}
	_ = e.control.SetWriteDeadline(time.Now().Add(patience)) // of a writer that has none
	if _, err := fmt.Fprintf(e.w, "event: %s\ndata: %s\n\n", name, b); err != nil {
		e.err = err
		return
	}
	e.err = e.control.Flush()
}
