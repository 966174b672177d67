package dashboard

import (
	"context"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/ds"
)

const (
	// interval is the time between two samples.
	interval = time.Second
	// span is the number of samples that are kept: ten minutes.
	span = 600
	// linger is how long timelines are kept after the last page was closed, so that they survive a
	// reload.
	linger = 15 * time.Second
	// measured is the approximate number of payloads measured per second while a page is open. It
	// can be up to four times as many.
	measured = 250
)

// source is the server to show, usually a [ds.Server].
type source interface {
	Stats() ds.Stats
	Players() iter.Seq[*ds.Player]
	Profile(every int)
	Profiles() []ds.RPCProfile
	Events() []ds.Event
}

var _ source = (*ds.Server)(nil)

// Config configures a [Dashboard]. The zero value of each field means its default.
type Config struct {
	// Title is the name of the server on the page; default "dedicated server".
	Title string
	// Hint is a text that explains how to connect a player. The page shows it while no player is
	// connected.
	Hint string
	// Name, if set, returns the game's name of a player. It is called from Run's goroutine, once
	// for each player while a page is open. The page shows at most 64 characters.
	Name func(*ds.Player) string
	// Sent, if set, returns the counts of the data that all clients of the server sent, for
	// programs that also run the clients. The page then shows the bit rates and the ratio of sent
	// data, and by default those of the data that the server received.
	Sent func() []ds.RPCStats
	// Extension is the path, relative to the page, at which another handler serves panel.css and
	// panel.js, a module whose function mount(section, {readOnly}) fills a section above the charts
	// and returns a function. The page calls this function with the figures of its tiles and their
	// formats (figures in assets/store.js, and assets/format.js) whenever they change. The default
	// is none.
	Extension string
	// Metrics is the path, relative to the page, at which another handler serves the server's
	// metrics for Prometheus. The page links to it; default none.
	Metrics string
	// Open serves the page to everybody. By default the dashboard refuses requests that did not
	// pass a [Guard]. Set it if another handler authorizes them.
	Open bool
	// ReadOnly makes the page show that it is read-only. The page passes it as readOnly to the
	// function mount of the Extension.
	ReadOnly bool
}

// Dashboard serves the page and its data. Its methods are safe for concurrent use. It refuses
// requests that did not pass a [Guard], unless Config.Open is set.
type Dashboard struct {
	src   source
	cfg   Config
	begun string // distinguishes runs of the server
	mux   *http.ServeMux
	hub   hub

	mu      sync.Mutex
	history [][]byte // samples as JSON, the oldest first, at most span
	players tracker
	profile profiles
	// buffered contains the names of the RPCs with jitter buffers.
	buffered []string
}

// New returns the dashboard of a server. It shows data while [Dashboard.Run] runs.
func New(srv *ds.Server, cfg Config) *Dashboard { return newDashboard(srv, cfg) }

func newDashboard(src source, cfg Config) *Dashboard {
	if cfg.Title == "" {
		cfg.Title = "dedicated server"
	}
	d := &Dashboard{src: src, cfg: cfg, begun: strconv.FormatInt(time.Now().UnixNano(), 36), hub: newHub()}
	d.players.name = cfg.Name
	d.routes()
	return d
}

// Run samples the source each second until ctx is done. Call it once.
func (d *Dashboard) Run(ctx context.Context) {
	defer d.hub.close()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	s := sampler{dashboard: d}
	defer s.stopDetails()
	s.last = observe(d.src, d.cfg.Sent, time.Now())
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.hub.woken:
			s.startDetails(time.Now())
		case <-tick.C:
			s.step(time.Now())
		}
	}
}

type sampler struct {
	dashboard *Dashboard
	last      observation
	detailed  bool      // players and bits are sampled
	payloads  uint64    // received in the last second
	every     int       // one of this number of payloads is measured
	seen      time.Time // last time that a page was open
}

// startDetails starts to sample players and bits, and publishes the state immediately.
func (s *sampler) startDetails(now time.Time) {
	d := s.dashboard
	s.seen = now
	if !s.detailed {
		s.detailed = true
		s.measure()
		d.mu.Lock()
		d.players.step(d.src.Players())
		d.profile.step(d.src.Profiles())
		d.mu.Unlock()
	}
	d.publish(&s.last)
}

// measure sets the share of payloads that the server measures, by the load. A change discards the
// previous measurements.
func (s *sampler) measure() {
	every := 1
	for s.payloads > 2*measured*uint64(every) {
		every *= 2
	}
	if s.every == 0 || every > 2*s.every || 4*every < s.every {
		s.every = every
		s.dashboard.src.Profile(every)
	}
}

func (s *sampler) stopDetails() {
	if !s.detailed {
		return
	}
	s.detailed, s.every = false, 0
	d := s.dashboard
	d.src.Profile(0)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.players.reset()
	d.profile = profiles{}
}

func (s *sampler) step(now time.Time) {
	d := s.dashboard
	if d.hub.watched() {
		s.seen = now
	} else if s.detailed && now.Sub(s.seen) > linger {
		s.stopDetails()
	}
	before := s.last
	s.last = observe(d.src, d.cfg.Sent, now)
	out := s.last.since(&before)
	s.payloads = out.payloads()
	if s.detailed {
		s.measure()
		profiles := d.src.Profiles()
		d.mu.Lock()
		d.players.step(d.src.Players())
		d.profile.step(profiles)
		out.Link = d.players.link()
		out.Bits = d.profile.spent()
		d.buffered = d.buffered[:0]
		for i := range s.last.buffers {
			d.buffered = append(d.buffered, s.last.buffers[i].RPC)
		}
		d.mu.Unlock()
	}
	b := marshal(out)
	d.mu.Lock()
	d.keep(b)
	d.mu.Unlock()
	if s.detailed {
		d.hub.send(event("sample", b))
		d.publish(&s.last)
	}
}

func (d *Dashboard) keep(sample []byte) {
	if len(d.history) == span {
		d.history = slices.Delete(d.history, 0, 1)
	}
	d.history = append(d.history, sample)
}

// publish sends the counts since the server started and the profile.
func (d *Dashboard) publish(o *observation) {
	d.mu.Lock()
	b := d.state(o)
	d.mu.Unlock()
	d.hub.send(event("state", b))
}
