package playback

import (
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/internal/cubes"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// Options configure a comparison. All schemes share them.
type Options struct {
	// Hz is the number of snapshots per second, a divisor of 60.
	Hz int
	// Link is the simulated link. Each run increments its seed.
	Link simnet.Config
	// Runs is the number of runs.
	Runs int
}

const (
	// packet is the nominal size of a packet. The link has no bandwidth limit.
	packet = 1000
	// settle is the time of a run before the measurement starts.
	settle = 2 * time.Second
	// phase is the time of the client's first frame. start and drift are the offset of its clock
	// and the relative difference of its rate.
	phase = 7 * time.Millisecond
	start = 1000 * time.Second
	drift = 1e-4
)

// Scheme is a configuration of interpolation.
type Scheme struct {
	Name   string
	Config interpolate.Config
}

// Schemes returns the schemes to compare at hz snapshots per second. The first three use the delay
// of interpolate.Delay.
func Schemes(hz int) []Scheme {
	c := interpolate.Config{Interval: time.Second / time.Duration(hz)}
	rule := interpolate.Delay(c.Interval, 50*time.Millisecond, 0.05)
	with := func(name string, m interpolate.Method, change func(*interpolate.Config)) Scheme {
		c := c
		c.Method = m
		change(&c)
		return Scheme{name, c}
	}
	asIs := func(*interpolate.Config) {}
	return []Scheme{
		with("nearest", interpolate.Nearest, asIs),
		with("linear", interpolate.Linear, asIs),
		with("Hermite", interpolate.Hermite, asIs),
		with("adaptive", interpolate.Hermite, func(c *interpolate.Config) { c.Adaptive = true }),
		with("extrapolated", interpolate.Hermite, func(c *interpolate.Config) { c.Delay, c.Extrapolate = rule/2, rule/2 }),
	}
}

// Indices of the two schemes that are compared cube by cube.
const (
	linear  = 1
	hermite = 2
)

type player struct {
	buffer *interpolate.Buffer[object]
	sample interpolate.Sample[object]
	result *Result
	bad    bool // the last frame was starved
}

// Run plays a recording with all schemes. They receive the same packets at the same times.
func Run(w *World, o Options) ([]Result, *Duel, error) {
	schemes := Schemes(o.Hz)
	results, duel := make([]Result, len(schemes)), new(Duel)
	for i, s := range schemes {
		results[i] = Result{Name: s.Name, Hz: o.Hz}
	}
	for range o.Runs {
		players := make([]player, len(schemes))
		for i, s := range schemes {
			b, err := interpolate.New(poses{}, s.Config)
			if err != nil {
				return nil, nil, err
			}
			players[i] = player{buffer: b, result: &results[i]}
		}
		if err := run(w, o, players, duel); err != nil {
			return nil, nil, err
		}
		o.Link.Seed++
	}
	for i := range results {
		results[i].finish()
	}
	return results, duel, nil
}

func run(w *World, o Options, players []player, duel *Duel) error {
	link, err := simnet.NewLink(o.Link)
	if err != nil {
		return err
	}
	queue := simnet.NewQueue[int](link)
	every := cubes.Rate / o.Hz
	for n := 0; n < len(w.frames); n += every {
		queue.Push(at(n), n, packet)
	}
	for shown := phase; shown < at(len(w.frames)-1); shown += time.Second / cubes.Rate {
		for {
			n, arrived, ok := queue.Pop(shown)
			if !ok {
				break
			}
			for i := range players {
				// The buffer counts the packets that it drops.
				_ = players[i].buffer.Add(local(arrived), at(n), w.ids, w.frames[n])
			}
		}
		for i := range players {
			players[i].show(w, shown, o.Link.Delay)
		}
		if shown >= settle {
			duel.add(w, &players[linear], &players[hermite])
		}
	}
	return nil
}

// local returns the time of the client's clock.
func local(t time.Duration) time.Duration { return start + t + time.Duration(drift*float64(t)) }

// show plays one frame and adds it to the result. Errors are measured at the last recorded frame
// before the playback clock, because the true poses at that time are known.
func (p *player) show(w *World, now, fastest time.Duration) {
	play, ok := p.buffer.Play(local(now))
	if !ok || play < 0 {
		return
	}
	n := frameAt(play)
	if n >= len(w.frames) {
		return
	}
	p.buffer.At(play, &p.sample)
	starved := p.sample.Starved
	p.buffer.At(at(n), &p.sample)
	if now >= settle {
		p.result.add(w, n, p.sample.Objects)
		p.result.delays += (now - fastest - play).Seconds()
		p.result.frames++
		if starved {
			p.result.starved++
			if !p.bad {
				p.result.hitches++
			}
		}
	}
	p.bad = starved
}

// Errors are the mean and the 99th percentile of the errors of moving cubes.
type Errors struct {
	Mean float64 `json:"mean"`
	P99  float64 `json:"p99"`

	all []float32
}

// Result is the measurement of one scheme.
type Result struct {
	Name string `json:"scheme"`
	Hz   int    `json:"hz"`
	// Position contains the distances to the recorded positions in millimeters, Orientation the
	// angles to the recorded orientations in degrees.
	Position    Errors `json:"position_mm"`
	Orientation Errors `json:"orientation_deg"`
	// Hitches is the number of hitches per minute. Starved is the fraction of frames for which the
	// newest snapshot was too old.
	Hitches float64 `json:"hitches_per_minute"`
	Starved float64 `json:"starved_share"`
	// Delay is the mean age of the shown state in milliseconds, without the minimum delay of the
	// link.
	Delay float64 `json:"added_delay_ms"`

	frames, hitches, starved int
	delays                   float64 // seconds
}

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

// Duel compares linear and Hermite interpolation cube by cube, where their positions differ.
type Duel struct {
	// Resting contains cubes at rest in the frame. Hit contains moving cubes that collide near the
	// frame, Free moving cubes whose velocity changes smoothly.
	Resting, Free, Hit Side
}

// Side is the comparison of one group of samples.
type Side struct {
	// Count is the number of samples, one per cube and frame. Linear and Hermite are mean errors in
	// millimeters.
	Count           int
	Linear, Hermite float64
	// Worse is the fraction of samples in which Hermite has the larger error. By is the mean
	// difference in those samples, in millimeters.
	Worse, By float64

	worse int
}

func (d *Duel) add(w *World, a, b *player) {
	n := frameAt(a.sample.Time)
	if a.sample.Time != b.sample.Time || n >= len(w.frames) {
		return
	}
	for i := range a.sample.Objects {
		p, q := a.sample.Objects[i].pose.Position, b.sample.Objects[i].pose.Position
		if p == q {
			continue
		}
		truth := &w.frames[n][i].pose
		side := &d.Free
		switch {
		case apart(truth.Velocity, schema.Vec3{}) < rest:
			side = &d.Resting
		case w.within(w.hits, n, i):
			side = &d.Hit
		}
		side.add(1e3*apart(truth.Position, p), 1e3*apart(truth.Position, q))
	}
}

func (s *Side) add(linear, hermite float64) {
	s.Count++
	n := float64(s.Count)
	s.Linear += (linear - s.Linear) / n
	s.Hermite += (hermite - s.Hermite) / n
	if hermite > linear {
		s.worse++
		s.By += (hermite - linear - s.By) / float64(s.worse)
	}
	s.Worse = float64(s.worse) / n
}
