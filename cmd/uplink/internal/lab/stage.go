package lab

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/trace"
)

const (
	maxViewers = 32
	// maxWaiting is how many poses wait for a viewer that reads slowly; more are not shown.
	maxWaiting = 512
	// maxPath is how many points the path of a recording is drawn with.
	maxPath = 400
)

// Stage is where the actors are seen: their frames as sent and as rebuilt go to whoever looks. While nobody does, a
// frame costs one load. It is safe for concurrent use.
type Stage struct {
	actors  []*actor
	viewers atomic.Int32
}

// actor is one recorded player.
type actor struct {
	trace   *trace.Trace
	watched atomic.Bool

	mu      sync.Mutex
	poser   *Poser
	viewers []*viewer
}

// NewStage makes a stage on which each client plays one trace.
func NewStage(traces []*trace.Trace) *Stage {
	s := &Stage{}
	for _, t := range traces {
		s.actors = append(s.actors, &actor{trace: t, poser: NewPoser(t.Schema)})
	}
	return s
}

// Actors gives the recorded players.
func (s *Stage) Actors() []Actor {
	all := make([]Actor, len(s.actors))
	for i, a := range s.actors {
		all[i] = Actor{Name: a.trace.Name, RPC: a.trace.Schema.RPC()}
	}
	return all
}

// Sent shows what an actor's client sent as its nth call.
func (s *Stage) Sent(actor, n int, f *schema.Frame) {
	s.actors[actor].show(f, func(v *viewer, at Pose) { v.sent = appendPose(v.sent, seen{n: n, Pose: at}) })
}

// Rebuilt shows what the server made of it. older says that the frame came with a newer one.
func (s *Stage) Rebuilt(actor, n int, f *schema.Frame, older bool) {
	s.actors[actor].show(f, func(v *viewer, at Pose) {
		v.rebuilt = appendPose(v.rebuilt, seen{n: n, older: older, Pose: at})
	})
}

func (a *actor) show(f *schema.Frame, to func(*viewer, Pose)) {
	if !a.watched.Load() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	at := a.poser.Pose(f)
	for _, v := range a.viewers {
		to(v, at)
	}
}

// seen is the pose of one frame.
type seen struct {
	n     int
	older bool
	Pose
}

func appendPose(to []seen, p seen) []seen {
	if len(to) >= maxWaiting {
		return to
	}
	return append(to, p)
}

// viewer looks at one actor. What it has not taken waits here, guarded by the actor's mu.
type viewer struct {
	actor         *actor
	sent, rebuilt []seen
}

// look has somebody look at an actor until leave, or returns nil if too many do.
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

// take appends what was shown since it was called last.
func (v *viewer) take(sent, rebuilt []seen) (_, _ []seen) {
	v.actor.mu.Lock()
	defer v.actor.mu.Unlock()
	sent, rebuilt = append(sent, v.sent...), append(rebuilt, v.rebuilt...)
	v.sent, v.rebuilt = v.sent[:0], v.rebuilt[:0]
	return sent, rebuilt
}

// path is where the recording leads, in at most maxPath points.
func (a *actor) path() []Pose {
	poser := NewPoser(a.trace.Schema)
	step := (len(a.trace.Frames) + maxPath - 1) / maxPath
	var path []Pose
	for i := 0; i < len(a.trace.Frames); i += step {
		path = append(path, poser.Pose(a.trace.At(i)))
	}
	return path
}
