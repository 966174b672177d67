package playback

import (
	"slices"

	"github.com/uplink-rpc/uplink/internal/lab/cubes"
)

// Errors are those of one kind, of cubes that move.
type Errors struct {
	Mean float64 `json:"mean"`
	P99  float64 `json:"p99"`

	all []float32
}

// Result is what a scheme showed.
type Result struct {
	Name string `json:"scheme"`
	Hz   int    `json:"hz"`
	// Position is how far cubes were from where they had been, in millimeters, Orientation in degrees.
	Position    Errors `json:"position_mm"`
	Orientation Errors `json:"orientation_deg"`
	// Hitches is how often a minute the play came to the end of the newest snapshot, Starved the share of frames that
	// were shown when it had.
	Hitches float64 `json:"hitches_per_minute"`
	Starved float64 `json:"starved_share"`
	// Delay is the mean age of what is shown, in milliseconds, less that of a packet which nothing held up.
	Delay float64 `json:"added_delay_ms"`

	frames, hitches, starved int
	delays                   float64 // seconds
}

// add compares objects with the frame that they should be.
func (r *Result) add(w *World, n int, objects []object) {
	for i := range objects {
		if w.within(w.moves, n, i) {
			truth := &w.frames[n][i].pose
			r.Position.all = append(r.Position.all, float32(1e3*apart(truth.Position, objects[i].pose.Position)))
			r.Orientation.all = append(r.Orientation.all, float32(turned(truth.Orientation, objects[i].pose.Orientation)))
		}
	}
}

func (r *Result) finish() {
	r.Position.finish()
	r.Orientation.finish()
	if r.frames == 0 {
		return
	}
	n := float64(r.frames)
	r.Hitches = float64(r.hitches) / n * cubes.Rate * 60
	r.Starved = float64(r.starved) / n
	r.Delay = r.delays / n * 1e3
}

func (e *Errors) finish() {
	if len(e.all) == 0 {
		return
	}
	sum := 0.0
	for _, v := range e.all {
		sum += float64(v)
	}
	e.Mean = sum / float64(len(e.all))
	slices.Sort(e.all)
	e.P99 = float64(e.all[len(e.all)*99/100])
	e.all = nil
}
