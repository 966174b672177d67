package bench

import (
	"runtime"
	"slices"
	"time"
)

// Minimum time and passes of a measurement.
const (
	measureFor    = 100 * time.Millisecond
	measurePasses = 5
	// warm is the number of frames before allocations count, because each slot of a ring allocates
	// when it is first used.
	warm = 512
)

// measure repeats the run without link and comparison, and sets the times, as medians of the
// passes, and the allocations. Encoding includes processing acks; decoding includes writing them
// and dropping late payloads.
func (p *pair) measure(c *Counts) error {
	var encode, decode []float64
	start := time.Now()
	for pass := 0; pass < measurePasses || time.Since(start) < measureFor; pass++ {
		if err := p.ctx.Err(); err != nil {
			return err
		}
		if err := p.reset(); err != nil {
			return err
		}
		at := time.Now()
		if err := p.encodeAll(0, len(p.trace.Frames)); err != nil {
			return err
		}
		encode = append(encode, float64(time.Since(at)))
		at = time.Now()
		p.decodeAll(p.script.arrivals)
		decode = append(decode, float64(time.Since(at)))
	}
	sent, arrived := float64(max(c.FramesSent, 1)), float64(max(len(p.script.arrivals)*p.perPayload(), 1))
	c.EncodeNs, c.DecodeNs = tenths(median(encode)/sent), tenths(median(decode)/arrived)
	c.EncodeFastest, c.DecodeFastest = tenths(slices.Min(encode)/sent), tenths(slices.Min(decode)/arrived)
	return p.countAllocs(c)
}

// countAllocs repeats the run once more.
func (p *pair) countAllocs(c *Counts) error {
	if err := p.reset(); err != nil {
		return err
	}
	frames, arrivals := len(p.trace.Frames), p.script.arrivals
	if frames <= warm || len(arrivals) <= warm {
		return nil // too short to count allocations
	}
	if err := p.encodeAll(0, warm); err != nil {
		return err
	}
	p.decodeAll(arrivals[:warm])
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := p.encodeAll(warm, frames); err != nil {
		return err
	}
	p.decodeAll(arrivals[warm:])
	runtime.ReadMemStats(&after)
	c.Allocs = share(int(after.Mallocs-before.Mallocs), frames-warm)
	return nil
}

// encodeAll encodes a range of frames, each after the acks that precede it.
func (p *pair) encodeAll(from, to int) error {
	acks := p.script.acks
	for len(acks) > 0 && acks[0].frame < from {
		acks = acks[1:]
	}
	for n := from; n < to; n++ {
		for len(acks) > 0 && acks[0].frame <= n {
			if err := p.enc.Ack(acks[0].ack); err != nil {
				return err
			}
			acks = acks[1:]
		}
		if _, _, err := p.appendFrame(p.room[:0], n); err != nil {
			return err
		}
	}
	return nil
}

func (p *pair) decodeAll(arrivals []arrival) {
	for i := range arrivals {
		_, _ = p.dec.Decode(arrivals[i].payload) // errors were counted in the run
		if arrivals[i].acked {
			p.dec.AppendAck(p.room[:0])
		}
	}
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

func tenths(v float64) float64 { return float64(int64(v*10+0.5)) / 10 }
