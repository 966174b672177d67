package analysis

import (
	"context"

	"github.com/uplink-rpc/uplink/internal/lab/bench"
	"github.com/uplink-rpc/uplink/trace"
)

// moment is what one frame may be predicted from: numbers of frames that the server was known to hold, -1 none.
type moment struct {
	base  int // the newest
	prior int // the newest before it
	far   int // the newest at least as far before it as it is old
}

// moments are those of all frames of a run.
type moments struct {
	of    []moment
	known []bool // by frame: it came, and in time
}

// reach is how far before a baseline others are looked for.
const reach = 64

// newMoments gives those of a trace as cfg has it: over a link, or at a distance.
func newMoments(ctx context.Context, t *trace.Trace, cfg *Config) (*moments, error) {
	n := len(t.Frames)
	m := &moments{of: make([]moment, n), known: make([]bool, n)}
	var course bench.Course
	if cfg.Distance == 0 {
		var err error
		course, err = bench.NewCourse(ctx, n, t.Schema.RateHz(), bench.Config{Link: cfg.Link, AckHz: cfg.AckHz, Ring: cfg.Ring, Suite: cfg.Suite})
		if err != nil {
			return nil, err
		}
	}
	for i := range n {
		base := i - cfg.Distance
		if course != nil {
			base = course[i].Base
		}
		m.known[i] = course == nil || course[i].Arrived
		m.of[i] = moment{base: base, prior: -1, far: -1}
		if base < 0 {
			m.of[i].base = -1
			continue
		}
		m.of[i].prior = m.newest(base - 1)
		m.of[i].far = m.newest(base - (i - base))
	}
	return m, nil
}

// newest is the newest known frame up to n.
func (m *moments) newest(n int) int {
	for k := n; k >= max(0, n-reach+1); k-- {
		if m.known[k] {
			return k
		}
	}
	return -1
}
