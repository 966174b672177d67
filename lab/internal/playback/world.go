// Package playback plays a recording of cubes over a simulated link and measures interpolation: the
// error of the shown poses, the rate of hitches, and the added delay.
package playback

import (
	"math"
	"time"

	"github.com/uplink-rpc/uplink/internal/cubes"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/interpolate"
)

type object struct{ pose interpolate.Pose }

type poses struct{}

func (poses) Pose(o *object) interpolate.Pose       { return o.pose }
func (poses) SetPose(o *object, p interpolate.Pose) { o.pose = p }

const (
	// velocityStep is the resolution of velocities in snapshots, in m/s.
	velocityStep = 1.0 / 32
	// near is the number of frames around a frame in which motion and collisions of a cube are
	// attributed to that frame.
	near = 6
	// hit is the minimum change of velocity in one frame that counts as a collision, in m/s.
	// Gravity causes a third of it.
	hit = 1.0
	// rest is the speed below which a cube is at rest, in m/s.
	rest = 0.05
)

// World is a recording with the velocities of its cubes.
type World struct {
	frames [][]object
	ids    []uint32
	// moves and hits are indexed by frame and cube. They count the frames so far in which the cube
	// moved or collided.
	moves, hits [][]int32
}

// NewWorld returns the world of a recording of at least two frames. Velocities are central
// differences.
func NewWorld(recorded []cubes.Frame) *World {
	w := &World{ids: make([]uint32, cubes.Count), moves: make([][]int32, len(recorded)), hits: make([][]int32, len(recorded))}
	for i := range w.ids {
		w.ids[i] = uint32(i)
	}
	for n := range recorded {
		w.frames = append(w.frames, make([]object, cubes.Count))
		for i := range recorded[n] {
			c := &recorded[n][i]
			pose := interpolate.Pose{Position: c.Meters(), Orientation: c.Orientation(), Velocity: velocity(recorded, n, i)}
			w.frames[n][i] = object{pose}
		}
		w.count(recorded, n)
	}
	return w
}

func velocity(recorded []cubes.Frame, n, i int) schema.Vec3 {
	from, to := max(n-1, 0), min(n+1, len(recorded)-1)
	a, b := recorded[from][i].Meters(), recorded[to][i].Meters()
	each := func(a, b float64) float64 {
		return math.Round((b-a)*cubes.Rate/float64(to-from)/velocityStep) * velocityStep
	}
	return schema.Vec3{X: each(a.X, b.X), Y: each(a.Y, b.Y), Z: each(a.Z, b.Z)}
}

func (w *World) count(recorded []cubes.Frame, n int) {
	w.moves[n], w.hits[n] = make([]int32, cubes.Count), make([]int32, cubes.Count)
	if n == 0 {
		return
	}
	for i := range w.moves[n] {
		w.moves[n][i], w.hits[n][i] = w.moves[n-1][i], w.hits[n-1][i]
		a, b := &recorded[n-1][i], &recorded[n][i]
		if a.Position != b.Position || a.Largest != b.Largest || a.Smallest != b.Smallest {
			w.moves[n][i]++
		}
		if apart(w.frames[n-1][i].pose.Velocity, w.frames[n][i].pose.Velocity) > hit {
			w.hits[n][i]++
		}
	}
}

// within reports whether a count of cube i increases near frame n.
func (w *World) within(counts [][]int32, n, i int) bool {
	return counts[min(n+near, len(counts)-1)][i] > counts[max(n-near, 0)][i]
}

func at(n int) time.Duration { return time.Duration(n) * time.Second / cubes.Rate }

func frameAt(t time.Duration) int {
	n := int(t * cubes.Rate / time.Second)
	if at(n+1) <= t { // at rounds down
		n++
	}
	return n
}

func apart(a, b schema.Vec3) float64 {
	return math.Sqrt((a.X-b.X)*(a.X-b.X) + (a.Y-b.Y)*(a.Y-b.Y) + (a.Z-b.Z)*(a.Z-b.Z))
}

// turned returns the angle between two orientations, in degrees.
func turned(a, b schema.Quat) float64 {
	chord := func(s float64) float64 {
		x, y, z, w := a.X-s*b.X, a.Y-s*b.Y, a.Z-s*b.Z, a.W-s*b.W
		return math.Sqrt(x*x + y*y + z*z + w*w)
	}
	return 4 * math.Asin(min(1, min(chord(1), chord(-1))/2)) * 180 / math.Pi
}
