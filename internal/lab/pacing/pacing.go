// Package pacing plays a client's calls over a simulated link into a jitter buffer, in virtual time: for tests and for
// the figures of docs/jitter.md.
package pacing

import (
	"math/rand/v2"
	"time"

	"github.com/uplink-rpc/uplink/jitter"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// Options are a course of play. Zero fields have no default, but for Buffer.
type Options struct {
	Hz       float64       // ticks and calls a second
	Duration time.Duration // of play
	Settle   time.Duration // what is measured begins then
	Up, Down simnet.Config // links
	Change   time.Duration // when Delay of both links changes; 0: never
	Delay    time.Duration // to this
	Drift    float64       // by how much the client's clock runs faster, as a share
	Older    int           // frames that ride along
	Ragged   time.Duration // by how much a tick of the server is late at most
	NoPace   bool          // the client does not listen
	Buffer   jitter.Config // but for Interval
	Seed     uint64
}

// report is what the server tells.
type report struct{ slack, target time.Duration }

// Result is what came of it, after Settle.
type Result struct {
	Ticks            int
	Stats            jitter.Stats  // what was added after Settle
	Slack            time.Duration // as measured at every tick, on average
	Target           time.Duration // likewise
	Off, Worst       time.Duration // distance of slack and target, on average, and the largest
	Fastest, Slowest float64       // rates of the client's clock
}

// Missing is how many ticks a minute have no frame, of ticks so many a second.
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

// Run plays, or gives the error of a link or buffer that cannot be.
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

// reportEvery is how often the server tells.
const reportEvery = 250 * time.Millisecond

func (w *world) play(interval time.Duration) error {
	var (
		tick, call, told time.Duration
		nominal          time.Duration
		sent             uint64
		changed          bool
	)
	call = time.Duration(w.rng.Float64() * float64(interval)) // the phase is anybody's
	for now := time.Duration(0); now < w.o.Duration; {
		now = min(tick, call)
		if w.o.Change != 0 && now >= w.o.Change && !changed {
			changed = true
			if err := w.change(); err != nil {
				return err
			}
		}
		if call <= tick {
			w.hear(now)
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
			w.reports.Push(now, report{st.Slack, st.Target}, 60)
		}
		nominal += interval
		tick = nominal
		if w.o.Ragged > 0 {
			tick += time.Duration(w.rng.Int64N(int64(w.o.Ragged)))
		}
	}
	st := w.buffer.Stats()
	w.result.Stats = jitter.Stats{
		Released: st.Released - w.before.Released, Missing: st.Missing - w.before.Missing, Dry: st.Dry - w.before.Dry,
		Late: st.Late - w.before.Late, Duplicate: st.Duplicate - w.before.Duplicate, Early: st.Early - w.before.Early,
		Resyncs: st.Resyncs - w.before.Resyncs, Skipped: st.Skipped - w.before.Skipped,
		Held: st.Held, Slack: st.Slack, Target: st.Target,
	}
	if n := time.Duration(w.result.Ticks); n > 0 {
		w.result.Slack /= n
		w.result.Target /= n
		w.result.Off /= n
	}
	return nil
}

// change changes both links.
func (w *world) change() error {
	up, down := w.up.Config(), w.down.Config()
	up.Delay, down.Delay = w.o.Delay, w.o.Delay
	if err := w.up.Set(up); err != nil {
		return err
	}
	return w.down.Set(down)
}

// hear has the client take what the server told.
func (w *world) hear(now time.Duration) {
	for {
		r, _, ok := w.reports.Pop(now)
		if !ok {
			return
		}
		w.pacer.Report(now, r.slack, r.target)
	}
}

// step is a tick of the server.
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
