package playback

import (
	"time"

	"github.com/uplink-rpc/uplink/internal/lab/cubes"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// Options are what all schemes have in common.
type Options struct {
	// Hz is how many snapshots a second are sent, a divisor of 60.
	Hz int
	// Link carries them. Its seed is that of the first run.
	Link simnet.Config
	// Runs is how many courses of the link are played.
	Runs int
}

const (
	// packet is the size of a packet, which no link here looks at.
	packet = 1000
	// settle is how long a run goes before it counts.
	settle = 2 * time.Second
	// phase and start are when the client shows its first frame, drift is how much faster its clock runs.
	phase = 7 * time.Millisecond
	start = 1000 * time.Second
	drift = 1e-4
)

// Scheme is one way to play snapshots.
type Scheme struct {
	Name   string
	Config interpolate.Config
}

// Schemes are those that are compared at so many snapshots a second. The first ones have the delay of the rule.
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

// The places of two schemes that are compared cube by cube.
const (
	linear  = 1
	hermite = 2
)

// player is one scheme in a run.
type player struct {
	buffer *interpolate.Buffer[object]
	sample interpolate.Sample[object]
	result *Result
	bad    bool // was starved when it showed the last frame
}

// Run plays a recording in all schemes at once: they get the same packets at the same times.
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

// run plays the recording once.
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
				// A packet of no use is the buffer's to count.
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

// local is the client's clock.
func local(t time.Duration) time.Duration { return start + t + time.Duration(drift*float64(t)) }

// show has a player show a frame and adds it to its result. What is looked at is the world at the last recorded frame
// up to the time that is to be shown, of which the truth is known.
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
