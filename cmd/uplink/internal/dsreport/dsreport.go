// Package dsreport measures how a dedicated server bears its load.
package dsreport

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/meter"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/schema"
)

// Reporter measures a server from when it is made.
type Reporter struct {
	srv    *ds.Server
	delays *meter.Durations // since the last line

	// Of Run alone:
	total       *meter.Durations
	begin, last moment
	most        int // players at a time
}

// moment is what the server and the process have used and counted.
type moment struct {
	at     time.Time
	cpu    time.Duration
	stats  ds.Stats
	kernel uint64
}

// New makes the reporter of a server.
func New(srv *ds.Server) *Reporter {
	r := &Reporter{srv: srv, delays: meter.NewDurations(), total: meter.NewDurations()}
	r.begin = r.look()
	r.last = r.begin
	return r
}

// Frame is part of the server's handlers: it measures from when the frame's datagram, or the batch that it came in,
// was read.
func (r *Reporter) Frame(_ *ds.Player, f ds.Frame[*schema.Frame]) {
	r.delays.Add(time.Since(f.Received))
}

// Run writes a line of what the last interval brought at the end of each, and one of the whole time when ctx is done.
func (r *Reporter) Run(ctx context.Context, every time.Duration, w io.Writer, asJSON bool) {
	write := func(l Line) { fmt.Fprintln(w, l) }
	if asJSON {
		out := json.NewEncoder(w)
		write = func(l Line) { _ = out.Encode(l) } // whoever reads it may be gone
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			write(r.next())
		case <-ctx.Done():
			r.next()
			l := r.line(r.begin, r.last, r.total)
			l.Whole, l.Players = true, r.most
			write(l)
			return
		}
	}
}

// next gives the line of the time since the last one.
func (r *Reporter) next() Line {
	before, delays := r.last, r.delays.Take()
	r.last = r.look()
	r.total.Merge(delays)
	return r.line(before, r.last, delays)
}

func (r *Reporter) look() moment {
	s := moment{at: time.Now(), cpu: meter.CPU(), stats: r.srv.Stats()}
	s.kernel, _ = r.srv.KernelDrops()
	s.kernel = max(s.kernel, r.last.kernel) // at the end the socket is closed
	r.most = max(r.most, s.stats.Transport.Open)
	return s
}

// Line is what the server did between two moments.
type Line struct {
	Whole   bool    `json:"whole"`   // of all the time, and not of the last interval
	Seconds float64 `json:"seconds"` // since the beginning
	// Players is how many are connected at the end; of the whole time the most that a line had.
	Players   int     `json:"players"`
	Frames    uint64  `json:"frames"` // delivered
	PerSecond float64 `json:"frames_per_second"`
	Missed    uint64  `json:"missed"`
	// ToHandler is the time from reading a frame's datagram to its handler.
	ToHandler meter.Summary `json:"to_handler"`
	// Drops counts what came and was not used, by reason; "kernel" are datagrams that nobody read in time.
	Drops map[string]uint64 `json:"drops"`
	Cores float64           `json:"cores"` // busy on average
	// Micros is the CPU time of a frame, all that the process does included.
	Micros float64 `json:"us_per_frame"`
}

func (r *Reporter) line(before, now moment, delays *meter.Durations) Line {
	seconds, cpu := max(now.at.Sub(before.at).Seconds(), 1e-9), (now.cpu - before.cpu).Seconds()
	had, has := count(&before), count(&now)
	l := Line{
		Seconds: now.at.Sub(r.begin.at).Seconds(), Players: now.stats.Transport.Open,
		Frames: has.frames - had.frames, Missed: has.missed - min(has.missed, had.missed), // a late frame takes one back
		ToHandler: delays.Summary(), Drops: has.drops, Cores: cpu / seconds,
	}
	l.PerSecond = float64(l.Frames) / seconds
	if l.Frames > 0 {
		l.Micros = 1e6 * cpu / float64(l.Frames)
	}
	for reason, n := range had.drops {
		l.Drops[reason] -= min(l.Drops[reason], n) // the kernel's table may not have been there
	}
	maps.DeleteFunc(l.Drops, func(_ string, n uint64) bool { return n == 0 })
	return l
}

// counts are a moment's, added up over all RPCs.
type counts struct {
	frames, missed uint64
	drops          map[string]uint64
}

func count(s *moment) counts {
	c := counts{drops: map[string]uint64{"kernel": s.kernel}}
	for i := range s.stats.RPCs {
		rpc := &s.stats.RPCs[i]
		c.frames += rpc.Frames()
		c.missed += rpc.Missed
		c.add(rpc.Drops[:])
	}
	c.add(s.stats.Drops[:])
	for reason, n := range s.stats.Transport.Dropped.All() {
		c.drops[reason] += n
	}
	return c
}

func (c *counts) add(drops []uint64) {
	for d, n := range drops {
		c.drops[ds.Drop(d).String()] += n
	}
}

// String gives the line as text.
func (l Line) String() string {
	var b strings.Builder
	if l.Whole {
		fmt.Fprintf(&b, "in all %.0f s: ", l.Seconds)
	} else {
		fmt.Fprintf(&b, "%.0f s: %d players, ", l.Seconds, l.Players)
	}
	fmt.Fprintf(&b, "%.0f frames/s, %d missed, to handler %v, %.3f cores, %.1f us a frame",
		l.PerSecond, l.Missed, l.ToHandler, l.Cores, l.Micros)
	for i, reason := range slices.Sorted(maps.Keys(l.Drops)) {
		if i == 0 {
			b.WriteString("; dropped")
		}
		fmt.Fprintf(&b, " %s %d", reason, l.Drops[reason])
	}
	return b.String()
}
