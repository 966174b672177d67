package session

import (
	"time"

	"github.com/uplink-rpc/uplink/examples/cubes/game"
	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/schema"
)

// past is how many ticks of the server's world are kept to compare with: four seconds.
const past = 4 * game.Rate

// truth is the server's world as it was in the last ticks.
type truth struct {
	frames [past][]pose
	newest int
}

// pose is where a cube is.
type pose struct {
	at   schema.Vec3
	turn schema.Quat
}

func newTruth(count int) truth {
	var t truth
	for i := range t.frames {
		t.frames[i] = make([]pose, count)
	}
	return t
}

func (t *truth) push(tick int, bodies []world.Body) {
	t.newest = tick
	frame := t.frames[tick%past]
	for i := range bodies {
		p, q := &bodies[i].Position, &bodies[i].Orientation
		frame[i] = pose{schema.Vec3{X: p[0], Y: p[1], Z: p[2]}, schema.Quat{X: q[0], Y: q[1], Z: q[2], W: q[3]}}
	}
}

// moment is a time among those that are kept: between two frames.
type moment struct {
	from, to []pose
	share    float64
}

// at finds a time, or says false where it is not kept.
func (t *truth) at(when time.Duration) (moment, bool) {
	ticks := when.Seconds() * game.Rate
	tick := int(ticks)
	if when < 0 || tick > t.newest || tick <= t.newest-past {
		return moment{}, false
	}
	m := moment{from: t.frames[tick%past], to: t.frames[min(tick+1, t.newest)%past], share: ticks - float64(tick)}
	return m, true
}

// pose gives where a cube was.
func (m *moment) pose(i int) pose {
	a, b := &m.from[i], &m.to[i]
	if *a == *b || m.share == 0 {
		return *a
	}
	return pose{mix(a.at, b.at, m.share), interpolate.Slerp(a.turn, b.turn, m.share)}
}

func mix(a, b schema.Vec3, f float64) schema.Vec3 {
	return schema.Vec3{X: a.X + f*(b.X-a.X), Y: a.Y + f*(b.Y-a.Y), Z: a.Z + f*(b.Z-a.Z)}
}
