// Package pacing runs a client's calls over a simulated link into a jitter buffer in virtual time,
// for tests and for docs/jitter.md.
package pacing

import (
	"math/rand/v2"
	"time"

	"github.com/uplink-rpc/uplink/jitter"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// Options configure a run. Only Buffer has defaults.
type Options struct {
	Hz       float64       // ticks and calls a second
	Duration time.Duration // duration of the run
	Settle   time.Duration // start of the measurement
	Up, Down simnet.Config // links
	Change   time.Duration // time at which the delay of both links changes; 0: never
	Delay    time.Duration // delay of both links after Change
	Drift    float64       // relative difference of the client's clock
	Older    int           // redundant frames per payload
	Ragged   time.Duration // maximum delay of a server tick
	NoPace   bool          // disables clock pacing
	Buffer   jitter.Config // Run sets its Interval
	Seed     uint64
}

type report struct {
	slack, target time.Duration
	rate          float64
}

// Result contains the measurements after Settle.
type Result struct {
	Ticks            int
	Stats            jitter.Stats  // Missing, Late and Resyncs since Settle
	Slack            time.Duration // mean over the ticks
	Target           time.Duration // mean over the ticks
	Off, Worst       time.Duration // difference between slack and target: mean and maximum
	Fastest, Slowest float64       // extreme rates of the client's clock
}

// Missing returns the missing ticks per minute.
func (r *Result) Missing(hz float64) float64 {
	return float64(r.Stats.Missing) / float64(r.Ticks) * 60 * hz
}

type world struct {
	o        Options
	rng      *rand.Rand
	up, down *simnet.Link
	frames   *simnet.Queue[uint64]
	reports  *simnet.Queue[report]
	buffer   *jitter.Buffer[uint64]
	pacer    jitter.Pacer

	result Result
	before jitter.Stats
}

// Run runs the simulation. The error is that of an invalid link or buffer.
func Run(o Options) (Result, error) {
	w := world{o: o, rng: rand.New(rand.NewPCG(o.Seed, 7))}
	o.Up.Seed, o.Down.Seed = w.rng.Uint64(), w.rng.Uint64()
	var err error
	if w.up, err = simnet.NewLink(o.Up); err != nil {
		return w.result, err
	}
	if w.down, err = simnet.NewLink(o.Down); err != nil {
		return w.result, err
	}
	o.Buffer.Interval = time.Duration(float64(time.Second) / o.Hz)
	if w.buffer, err = jitter.New[uint64](o.Buffer); err != nil {
		return w.result, err
	}
	w.frames, w.reports = simnet.NewQueue[uint64](w.up), simnet.NewQueue[report](w.down)
	w.result.Fastest, w.result.Slowest = 1, 1
	err = w.play(o.Buffer.Interval)
	return w.result, err
}

const reportEvery = 250 * time.Millisecond

func (w *world) play(interval time.Duration) error {
	var (
		tick, call, told time.Duration
		nominal          time.Duration
		sent             uint64
		changed          bool
	)
	call = time.Duration(w.rng.Float64() * float64(interval)) // random phase
	for now := time.Duration(0); now < w.o.Duration; {
		now = min(tick, call)
		if w.o.Change != 0 && now >= w.o.Change && !changed {
			changed = true
			for _, link := range []*simnet.Link{w.up, w.down} {
				cfg := link.Config()
				cfg.Delay = w.o.Delay
				if err := link.Set(cfg); err != nil {
					return err
				}
			}
		}
		if call <= tick {
			for {
				r, _, ok := w.reports.Pop(now)
				if !ok {
					break
				}
				w.pacer.Report(now, r.slack, r.target, r.rate)
			}
			w.frames.Push(now, sent, 100)
			sent++
			rate := 1.0
			if !w.o.NoPace {
				rate = w.pacer.Rate(now)
			}
			if now >= w.o.Settle {
				w.result.Fastest, w.result.Slowest = max(w.result.Fastest, rate), min(w.result.Slowest, rate)
			}
			call += time.Duration(float64(interval) / rate / (1 + w.o.Drift))
			continue
		}
		w.step(now)
		if now-told >= reportEvery && w.buffer.Stats().Released > 0 {
			told = now
			st := w.buffer.Stats()
			w.reports.Push(now, report{st.Slack, st.Target, st.Rate}, 60)
		}
		nominal += interval
		tick = nominal
		if w.o.Ragged > 0 {
			tick += time.Duration(w.rng.Int64N(int64(w.o.Ragged)))
		}
	}
	st := w.buffer.Stats()
	w.result.Stats = jitter.Stats{Missing: st.Missing - w.before.Missing, Late: st.Late - w.before.Late, Resyncs: st.Resyncs - w.before.Resyncs}
	if n := time.Duration(w.result.Ticks); n > 0 {
		w.result.Slack /= n
		w.result.Target /= n
		w.result.Off /= n
	}
	return nil
}

func (w *world) step(now time.Duration) {
	for {
		newest, at, ok := w.frames.Pop(now)
		if !ok {
			break
		}
		for older := min(uint64(w.o.Older), newest); ; older-- {
			v := newest - older
			w.buffer.Add(at, v, &v)
			if older == 0 {
				break
			}
		}
	}
	var v uint64
	w.buffer.Step(now, &v)
	if now < w.o.Settle {
		w.before = w.buffer.Stats()
		return
	}
	st := w.buffer.Stats()
	off := st.Slack - st.Target
	off = max(off, -off)
	w.result.Ticks++
	w.result.Slack += st.Slack
	w.result.Target += st.Target
	w.result.Off += off
	w.result.Worst = max(w.result.Worst, off)
}
