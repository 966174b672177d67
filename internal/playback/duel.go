package playback

// Duel compares linear and Hermite interpolation cube by cube, where their positions differ.
type Duel struct {
	// Free are cubes whose velocity changes smoothly around the frame, Hit those that hit something.
	Free, Hit Side
}

// Side is one part of the cubes.
type Side struct {
	// Count is how many cubes in all frames, Linear and Hermite are the mean errors in millimeters.
	Count           int
	Linear, Hermite float64
	// Worse is in what share of them Hermite is further off.
	Worse float64
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
		side := &d.Free
		if w.within(w.hits, n, i) {
			side = &d.Hit
		}
		truth := w.frames[n][i].pose.Position
		side.add(1e3*apart(truth, p), 1e3*apart(truth, q))
	}
}

// add keeps means as they go.
func (s *Side) add(linear, hermite float64) {
	s.Count++
	n, worse := float64(s.Count), 0.0
	if hermite > linear {
		worse = 1
	}
	s.Linear += (linear - s.Linear) / n
	s.Hermite += (hermite - s.Hermite) / n
	s.Worse += (worse - s.Worse) / n
}
