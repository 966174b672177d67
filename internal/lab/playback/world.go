// Package playback measures what interpolation makes of a recording of cubes that comes over a
// simulated link: how far what is shown is from what was recorded, how often the play stops, and
// how late it is.
package playback

import (
	"math"
	"time"

	"github.com/uplink-rpc/uplink/internal/lab/cubes"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/schema"
)

// object is a cube as a snapshot has it.
type object struct {
	pose        interpolate.Pose
	interacting bool
}

// poses is the adapter of objects.
type poses struct{}

func (poses) Pose(o *object) interpolate.Pose       { return o.pose }
func (poses) SetPose(o *object, p interpolate.Pose) { o.pose = p }

const (
	// velocityStep is that of velocities in snapshots, in meters a second.
	velocityStep = 1.0 / 32
	// near is how many frames before and after one say whether a cube moves then, and is hit.
	near = 6
	// hit is by how much the velocity of a cube that hits something changes within a frame, in
	// meters a second. Gravity alone makes a third of it.
	hit = 1.0
	// rest is a speed below which a cube lies still, in meters a second.
	rest = 0.05
)

// World is a recording with velocities.
type World struct {
	frames [][]object
	ids    []uint32
	// moves and hits count, for each cube, in how many frames up to each it moved and was hit.
	moves, hits [][]int32
}

// NewWorld gives cubes velocities by central difference. There are two frames at least.
func NewWorld(recorded []cubes.Frame) *World {
	w := &World{ids: make([]uint32, cubes.Count), moves: make([][]int32, len(recorded)), hits: make([][]int32, len(recorded))}
	for i := range w.ids {
		w.ids[i] = uint32(i)
	}
	for n := range recorded {
		w.frames = append(w.frames, make([]object, cubes.Count))
		for i := range recorded[n] {
			c := &recorded[n][i]
			w.frames[n][i] = object{
				pose:        interpolate.Pose{Position: c.Meters(), Orientation: c.Orientation(), Velocity: velocity(recorded, n, i)},
				interacting: c.Interacting == 1,
			}
		}
		w.count(recorded, n)
	}
	return w
}

// velocity is a cube's in a frame, as a snapshot has it.
func velocity(recorded []cubes.Frame, n, i int) schema.Vec3 {
	from, to := max(n-1, 0), min(n+1, len(recorded)-1)
	a, b := recorded[from][i].Meters(), recorded[to][i].Meters()
	each := func(a, b float64) float64 {
		return math.Round((b-a)*cubes.Rate/float64(to-from)/velocityStep) * velocityStep
	}
	return schema.Vec3{X: each(a.X, b.X), Y: each(a.Y, b.Y), Z: each(a.Z, b.Z)}
}

// count adds one frame to the counts.
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

// within says whether a count grew near a frame.
func (w *World) within(counts [][]int32, n, i int) bool {
	return counts[min(n+near, len(counts)-1)][i] > counts[max(n-near, 0)][i]
}

// at is the time of a frame.
func at(n int) time.Duration { return time.Duration(n) * time.Second / cubes.Rate }

// frameAt is the last frame up to a time.
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

// turned is the angle between two orientations, in degrees.
func turned(a, b schema.Quat) float64 {
	chord := func(s float64) float64 {
		x, y, z, w := a.X-s*b.X, a.Y-s*b.Y, a.Z-s*b.Z, a.W-s*b.W
		return math.Sqrt(x*x + y*y + z*z + w*w)
	}
	return 4 * math.Asin(min(1, min(chord(1), chord(-1))/2)) * 180 / math.Pi
}
