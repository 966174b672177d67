package client

import (
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/jitter"
)

// Pace is how the server's jitter buffer (ds.Config.JitterBuffer) wants an RPC called,
// and how it stands. Where there is none all is 0 but Rate.
type Pace struct {
	// Rate is how fast the game's clock should run so that calls come when the server
	// wants them: 1 is its usual speed, 1.01 a hundredth faster. It is within
	// jitter.MaxPace of 1, and 1 if nothing was told for two seconds.
	Rate float64
	// Slack is how early calls came before the server used them, on average, below 0 if
	// they came too late; Target is how early they should.
	Slack, Target time.Duration
	// Missing counts the server's ticks that had no call, Late the calls that came after
	// their tick, as far as it was told over all reconnections.
	Missing, Late uint64
}

// Interval is the time from one call to the next, where it would be d.
func (p Pace) Interval(d time.Duration) time.Duration {
	if p.Rate <= 0 {
		return d
	}
	return time.Duration(float64(d) / p.Rate)
}

// pace follows what the server tells of a stream's jitter buffer.
type pace struct {
	began time.Time
	pacer jitter.Pacer
	last  control.Buffered // told over the link that there is
	stats Pace
}

// told takes what the server tells.
func (p *pace) told(now time.Time, b *control.Buffered) {
	if p.began.IsZero() {
		p.began = now
	}
	p.pacer.Report(now.Sub(p.began), b.Slack, b.Target)
	p.stats.Slack, p.stats.Target = b.Slack, b.Target
	p.stats.Missing += uint64(b.Missing - p.last.Missing)
	p.stats.Late += uint64(b.Late - p.last.Late)
	p.last = *b
}

// at gives the pace at a time.
func (p *pace) at(now time.Time) Pace {
	out := p.stats
	out.Rate = p.pacer.Rate(now.Sub(p.began))
	return out
}

// relink says that the next one who tells counts from 0.
func (p *pace) relink() {
	p.last = control.Buffered{}
	p.pacer = jitter.Pacer{}
}

// slack takes what the server tells of jitter buffers, and the acks after it.
func (c *Conn) slack(b []byte, now time.Time) error {
	var room [control.MaxBuffered]control.Buffered
	all, acks, err := control.ParseSlack(room[:0], b)
	if err != nil {
		return err
	}
	for i := range all {
		if s := c.stream(int(all[i].RPC)); s != nil {
			s.mu.Lock()
			s.pace.told(now, &all[i])
			s.mu.Unlock()
		}
	}
	c.mu.Lock()
	c.stats.AckBytes += uint64(len(b) - len(acks))
	c.mu.Unlock()
	return c.acks(acks)
}

func (s *stream) paced() Pace {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pace.at(time.Now())
}

// Pace says how the game's clock should run for the server's jitter buffer. Ask at each
// tick, and have the next one after Pace.Interval. Of several RPCs that are called in
// the same tick one is enough. It allocates nothing.
func (s *Stream[T]) Pace() Pace { return s.stream.paced() }

// Pace says how the game's clock should run; see [Stream.Pace].
func (s *FrameStream) Pace() Pace { return s.stream.paced() }
