// Package dsreport measures the load of a dedicated server.
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
	"github.com/uplink-rpc/uplink/internal/schema"
)

// Reporter measures a server.
type Reporter struct {
	srv    *ds.Server
	delays *meter.Durations // delays since the last line

	// Used only by Run:
	total       *meter.Durations
	begin, last moment
	maxPlayers  int
}

// moment contains the counters of server and process at a time.
type moment struct {
	at     time.Time
	cpu    time.Duration
	stats  ds.Stats
	kernel uint64
}

// New returns a reporter that starts now.
func New(srv *ds.Server) *Reporter {
	r := &Reporter{srv: srv, delays: meter.NewDurations(), total: meter.NewDurations()}
	r.begin = r.look()
	r.last = r.begin
	return r
}

// Frame is a handler of the server. It measures the time since the frame's datagram, or the batch
// with it, was read.
func (r *Reporter) Frame(_ *ds.Player, f ds.Frame[*schema.Frame]) {
	r.delays.Add(time.Since(f.Received))
}

// Run writes a line after each interval, and one for the whole time when ctx is done.
func (r *Reporter) Run(ctx context.Context, every time.Duration, w io.Writer, asJSON bool) {
	write := func(l Line) { fmt.Fprintln(w, l) }
	if asJSON {
		out := json.NewEncoder(w)
		write = func(l Line) { _ = out.Encode(l) } // fails only if the reader has ended
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
			l.Whole, l.Players = true, r.maxPlayers
			write(l)
			return
		}
	}
}

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
	r.maxPlayers = max(r.maxPlayers, s.stats.Transport.Open)
	return s
}

// Line contains the figures of one interval, or of the whole run.
type Line struct {
	Whole   bool    `json:"whole"`   // covers the whole run
	Seconds float64 `json:"seconds"` // since the beginning
	// Players is the number of players at the end of the interval, or the maximum over all
	// intervals.
	Players   int     `json:"players"`
	Frames    uint64  `json:"frames"` // delivered frames
	PerSecond float64 `json:"frames_per_second"`
	Missed    uint64  `json:"missed"`
	// ToHandler is the time from reading a frame's datagram until its handler runs.
	ToHandler meter.Summary `json:"to_handler"`
	// Drops counts drops by reason; "kernel" counts datagrams lost in the socket's buffer.
	Drops map[string]uint64 `json:"drops"`
	Cores float64           `json:"cores"` // busy on average
	// Micros is the CPU time of the process per frame.
	Micros float64 `json:"us_per_frame"`
}

func (r *Reporter) line(before, now moment, delays *meter.Durations) Line {
	seconds, cpu := max(now.at.Sub(before.at).Seconds(), 1e-9), (now.cpu - before.cpu).Seconds()
	had, has := count(&before), count(&now)
	l := Line{
		Seconds: now.at.Sub(r.begin.at).Seconds(), Players: now.stats.Transport.Open,
		// A late frame reduces the count.
		Frames: has.frames - had.frames, Missed: has.missed - min(has.missed, had.missed),
		ToHandler: delays.Summary(), Drops: has.drops, Cores: cpu / seconds,
	}
	l.PerSecond = float64(l.Frames) / seconds
	if l.Frames > 0 {
		l.Micros = 1e6 * cpu / float64(l.Frames)
	}
	for reason, n := range had.drops {
		l.Drops[reason] -= min(l.Drops[reason], n) // the kernel's table may have been unavailable
	}
	maps.DeleteFunc(l.Drops, func(_ string, n uint64) bool { return n == 0 })
	return l
}

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

// String formats the line.
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
