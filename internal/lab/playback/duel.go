package playback

import (
	"github.com/uplink-rpc/uplink/schema"
)

// Duel compares linear and Hermite interpolation cube by cube, where their positions differ.
type Duel struct {
	// Resting are cubes that lie still in the frame, and moved shortly before or will shortly after. Of the others Hit are
	// those that hit something around the frame, Free those whose velocity changes smoothly.
	Resting, Free, Hit Side
}

// Side is one part of the cubes.
type Side struct {
	// Count is how many cubes in all frames, Linear and Hermite are the mean errors in millimeters.
	Count           int
	Linear, Hermite float64
	// Worse is in what share of them Hermite is further off, By by how many millimeters on average there.
	Worse, By float64

	worse int
}

// add compares the frames that both have just shown, at one time.
func (d *Duel) add(w *World, a, b *player) {
	n := frameAt(a.sample.Time)
	if a.sample.Time != b.sample.Time || n >= len(w.frames) {
		return
	}
	for i := range a.sample.Objects {
		p, q := a.sample.Objects[i].pose.Position, b.sample.Objects[i].pose.Position
		if p == q {
			continue
		}
		truth := &w.frames[n][i].pose
		side := &d.Free
		switch {
		case apart(truth.Velocity, schema.Vec3{}) < rest:
			side = &d.Resting
		case w.within(w.hits, n, i):
			side = &d.Hit
		}
		side.add(1e3*apart(truth.Position, p), 1e3*apart(truth.Position, q))
	}
}

// add keeps means as they go.
func (s *Side) add(linear, hermite float64) {
	s.Count++
	n := float64(s.Count)
	s.Linear += (linear - s.Linear) / n
	s.Hermite += (hermite - s.Hermite) / n
	if hermite > linear {
		s.worse++
		s.By += (hermite - linear - s.By) / float64(s.worse)
	}
	s.Worse = float64(s.worse) / n
}
