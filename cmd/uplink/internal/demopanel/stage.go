package demopanel

import (
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/trace"
)

const (
	maxViewers = 32
	// maxWaiting is the maximum number of poses that are queued for a viewer; further poses are
	// dropped.
	maxWaiting = 512
	// maxPath is the maximum number of points that a recording's path is drawn with.
	maxPath = 400
)

// Stage passes the actors' frames, as sent and as decoded, to viewers. Without a viewer, a frame
// costs one load. It is safe for concurrent use.
type Stage struct {
	actors  []*actor
	viewers atomic.Int32
}

type actor struct {
	trace   *trace.Trace
	watched atomic.Bool

	mu      sync.Mutex
	poser   *Poser
	viewers []*viewer
}

// NewStage returns a stage with one actor per trace.
func NewStage(traces []*trace.Trace) *Stage {
	s := &Stage{}
	for _, t := range traces {
		s.actors = append(s.actors, &actor{trace: t, poser: NewPoser(t.Schema)})
	}
	return s
}

// Actors returns the recorded players.
func (s *Stage) Actors() []Actor {
	all := make([]Actor, len(s.actors))
	for i, a := range s.actors {
		all[i] = Actor{Name: a.trace.Name, RPC: a.trace.Schema.RPC()}
	}
	return all
}

// Sent passes on a frame that an actor's client sent as its nth call.
func (s *Stage) Sent(actor, n int, f *schema.Frame) {
	s.actors[actor].show(f, seen{n: n}, func(v *viewer) *[]seen { return &v.sent })
}

// Rebuilt passes on a frame that the server decoded. older reports whether it arrived as a
// redundant frame of a newer packet.
func (s *Stage) Rebuilt(actor, n int, f *schema.Frame, older bool) {
	s.actors[actor].show(f, seen{n: n, older: older}, func(v *viewer) *[]seen { return &v.rebuilt })
}

func (a *actor) show(f *schema.Frame, p seen, waiting func(*viewer) *[]seen) {
	if !a.watched.Load() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	p.Pose = a.poser.Pose(f)
	for _, v := range a.viewers {
		if to := waiting(v); len(*to) < maxWaiting {
			*to = append(*to, p)
		}
	}
}

// seen is the pose of one frame.
type seen struct {
	n     int
	older bool
	Pose
}

// viewer is a viewer of one actor, with its queue of poses. The actor's mu guards the queue.
type viewer struct {
	actor         *actor
	sent, rebuilt []seen
}

// look registers a viewer of actor i until leave is called, or returns nil if there are too many.
func (s *Stage) look(i int) *viewer {
	if s.viewers.Add(1) > maxViewers {
		s.viewers.Add(-1)
		return nil
	}
	a := s.actors[i]
	a.mu.Lock()
	defer a.mu.Unlock()
	v := &viewer{actor: a}
	a.viewers = append(a.viewers, v)
	a.watched.Store(true)
	return v
}

func (s *Stage) leave(v *viewer) {
	a := v.actor
	a.mu.Lock()
	defer a.mu.Unlock()
	a.viewers = slices.DeleteFunc(a.viewers, func(o *viewer) bool { return o == v })
	a.watched.Store(len(a.viewers) > 0)
	s.viewers.Add(-1)
}

func (v *viewer) take(sent, rebuilt []seen) (_, _ []seen) {
	v.actor.mu.Lock()
	defer v.actor.mu.Unlock()
	sent, rebuilt = append(sent, v.sent...), append(rebuilt, v.rebuilt...)
	v.sent, v.rebuilt = v.sent[:0], v.rebuilt[:0]
	return sent, rebuilt
}

// path returns the path of the recording in at most maxPath points.
func (a *actor) path() []Pose {
	poser := NewPoser(a.trace.Schema)
	step := (len(a.trace.Frames) + maxPath - 1) / maxPath
	var path []Pose
	for i := 0; i < len(a.trace.Frames); i += step {
		path = append(path, poser.Pose(a.trace.At(i)))
	}
	return path
}

// Pose is the position, heading and velocity of an actor, seen from above. It has the units of the
// recording. y points up on the page, and angles are in radians counter-clockwise from x.
type Pose struct {
	X, Y    float64
	Heading float64
	VX, VY  float64
}

// Poser reads poses from the frames of a schema. Not safe for concurrent use.
type Poser struct {
	schema                      *schema.Schema
	position, velocity, heading int // indexes of fields; -1: none
	values                      []float64
}

// NewPoser finds the fields that contain the pose. If a schema has no position, all poses are at
// the origin.
func NewPoser(s *schema.Schema) *Poser {
	fields := s.Fields()
	first := func(is func(f *schema.Field) bool) int {
		return slices.IndexFunc(fields, func(f schema.Field) bool { return is(&f) })
	}
	p := &Poser{schema: s, velocity: -1}
	p.position = first(func(f *schema.Field) bool { return f.Kind == schema.KindVec3 && named(f, "loc", "pos") })
	if p.position >= 0 && fields[p.position].Velocity != "" {
		p.velocity = first(func(f *schema.Field) bool { return f.Name == fields[p.position].Velocity })
	}
	p.heading = first(func(f *schema.Field) bool {
		return f.Kind == schema.KindQuat || f.Kind == schema.KindAngle && f.Values() >= 2
	})
	return p
}

func named(f *schema.Field, prefixes ...string) bool {
	name := strings.ToLower(f.Name)
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// Moves reports whether frames contain the actor's velocity.
func (p *Poser) Moves() bool { return p.velocity >= 0 }

// Pose returns the pose in a frame.
func (p *Poser) Pose(f *schema.Frame) Pose {
	var at Pose
	if v := p.field(f, p.position); v != nil {
		at.X, at.Y = v[0], v[1]
	}
	if v := p.field(f, p.velocity); v != nil {
		at.VX, at.VY = v[0], v[1]
	}
	switch v := p.field(f, p.heading); len(v) {
	case 0:
	case 4:
		at.Heading = yaw(v[0], v[1], v[2], v[3])
	default: // pitch, yaw
		at.Heading = v[1] * math.Pi / 180
	}
	return at
}

func (p *Poser) field(f *schema.Frame, i int) []float64 {
	if i < 0 {
		return nil
	}
	p.values = p.schema.RestoreField(p.values[:0], f, i)
	return p.values
}

// yaw returns the angle of a rotated x axis, projected onto the horizontal plane.
func yaw(x, y, z, w float64) float64 { return math.Atan2(2*(w*z+x*y), 1-2*(y*y+z*z)) }
