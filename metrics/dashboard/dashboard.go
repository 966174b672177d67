package dashboard

import (
	"context"
	"iter"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/ds"
)

const (
	// interval is the time between two samples.
	interval = time.Second
	// span is how many samples are kept: ten minutes.
	span = 600
	// linger is how long players are looked at after the last page was closed, so that one
	// that is loaded again finds what it had.
	linger = 15 * time.Second
	// measured is about how many payloads of all RPCs are measured a second while a page is
	// open, up to four times as many.
	measured = 250
)

// Source is what is shown: a [ds.Server].
type Source interface {
	Stats() ds.Stats
	Players() iter.Seq[*ds.Player]
	Profile(every int)
	Profiles() []ds.RPCProfile
}

var _ Source = (*ds.Server)(nil)

// Config sets up a [Dashboard]. The zero value of each field means its default.
type Config struct {
	// Title is what the page calls the server, its address say; default "dedicated server".
	Title string
	// Hint is what the page says where no player is connected: how to connect one.
	Hint string
	// Name, if set, gives what the game calls a player. It is called from Run's goroutine,
	// once for each player while a page is open. Of longer names 64 characters are shown.
	Name func(*ds.Player) string
	// Extension is the path, relative to the page's, under which another handler serves
	// panel.js, a module whose function mount(section, {readOnly}) fills what the page shows
	// above its own charts, and panel.css. The default is none.
	Extension string
	// Metrics is the path, relative to the page's, of the same counters for Prometheus,
	// which the page links to; default none.
	Metrics string
	// ReadOnly has the page say that nothing can be set from it.
	ReadOnly bool
}

// Dashboard serves the page and what it shows. Its methods are safe for concurrent use. It
// does not ask who comes: see [Guard].
type Dashboard struct {
	src   Source
	cfg   Config
	begun string // tells one run of the server from the next
	mux   *http.ServeMux
	hub   hub

	mu      sync.Mutex
	history [][]byte // samples as JSON, the oldest first, at most span
	players tracker
	profile profiles
}

// New makes the dashboard of a server. It shows something as soon as [Dashboard.Run] runs.
func New(src Source, cfg Config) *Dashboard {
	if cfg.Title == "" {
		cfg.Title = "dedicated server"
	}
	d := &Dashboard{src: src, cfg: cfg, begun: strconv.FormatInt(time.Now().UnixNano(), 36), hub: newHub()}
	d.players.name = cfg.Name
	d.routes()
	return d
}

// Run takes a sample each second until ctx is done. It must run once.
func (d *Dashboard) Run(ctx context.Context) {
	defer d.hub.close()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	s := sampler{dashboard: d}
	defer s.rest()
	s.last = observe(d.src, time.Now())
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.hub.woken:
			s.look(time.Now())
		case <-tick.C:
			s.step(time.Now())
		}
	}
}

// sampler is what Run keeps from one sample to the next.
type sampler struct {
	dashboard *Dashboard
	last      observation
	looking   bool      // at players and bits
	payloads  uint64    // that came in the last second
	every     int       // how many payloads there are for one that is measured
	seen      time.Time // when a page was last open
}

// look begins to look at players and bits, and shows what there is without waiting for the
// next sample.
func (s *sampler) look(now time.Time) {
	d := s.dashboard
	s.seen = now
	if !s.looking {
		s.looking = true
		s.measure()
		d.mu.Lock()
		d.players.step(d.src.Players(), now)
		d.profile.step(d.src.Profiles())
		d.mu.Unlock()
	}
	d.publish(&s.last)
}

// measure has the server measure one of so many payloads that it costs little. What was
// measured is forgotten when that changes: it does only with the load.
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

// rest ends it.
func (s *sampler) rest() {
	if !s.looking {
		return
	}
	s.looking, s.every = false, 0
	d := s.dashboard
	d.src.Profile(0)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.players.reset()
	d.profile = profiles{}
}

// step takes a sample.
func (s *sampler) step(now time.Time) {
	d := s.dashboard
	if d.hub.watched() {
		s.seen = now
	} else if s.looking && now.Sub(s.seen) > linger {
		s.rest()
	}
	before := s.last
	s.last = observe(d.src, now)
	out := s.last.since(&before)
	s.payloads = out.payloads()
	if s.looking {
		s.measure()
		profiles := d.src.Profiles()
		d.mu.Lock()
		d.players.step(d.src.Players(), now)
		d.profile.step(profiles)
		out.Link = d.players.link()
		out.Bits = d.profile.spent()
		d.mu.Unlock()
	}
	b := marshal(out)
	d.mu.Lock()
	d.keep(b)
	d.mu.Unlock()
	if s.looking {
		d.hub.send(event("sample", b))
		d.publish(&s.last)
	}
}

// keep adds a sample to the history.
func (d *Dashboard) keep(sample []byte) {
	if len(d.history) == span {
		copy(d.history, d.history[1:])
		d.history[span-1] = sample
		return
	}
	d.history = append(d.history, sample)
}

// publish sends what the server counted since it began, its players and where the bits go.
func (d *Dashboard) publish(o *observation) {
	d.mu.Lock()
	b := d.state(o)
	d.mu.Unlock()
	d.hub.send(event("state", b))
}
