package session

import (
	"time"

	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/schema"
)

// historyTicks is the capacity of a history: four seconds.
const historyTicks = 4 * world.TickRate

// history is a ring buffer of the poses of all cubes in the server's last ticks.
type history struct {
	frames [historyTicks][]cubePose
	newest int
}

// cubePose is the position and orientation of a cube.
type cubePose struct {
	position    schema.Vec3
	orientation schema.Quat
}

func newHistory(count int) history {
	var t history
	for i := range t.frames {
		t.frames[i] = make([]cubePose, count)
	}
	return t
}

func (t *history) push(tick int, bodies []world.Body) {
	t.newest = tick
	frame := t.frames[tick%historyTicks]
	for i := range bodies {
		p, q := &bodies[i].Position, &bodies[i].Orientation
		frame[i] = cubePose{schema.Vec3{X: p[0], Y: p[1], Z: p[2]}, schema.Quat{X: q[0], Y: q[1], Z: q[2], W: q[3]}}
	}
}

// interval is a time between two ticks of the history.
type interval struct {
	from, to []cubePose
	fraction float64
}

// at returns the interval of a time. It returns false if the time is not in the history.
func (t *history) at(when time.Duration) (interval, bool) {
	ticks := when.Seconds() * world.TickRate
	tick := int(ticks)
	if when < 0 || tick > t.newest || tick <= t.newest-historyTicks {
		return interval{}, false
	}
	m := interval{from: t.frames[tick%historyTicks], to: t.frames[min(tick+1, t.newest)%historyTicks], fraction: ticks - float64(tick)}
	return m, true
}

// pose returns the interpolated pose of cube i.
func (m *interval) pose(i int) cubePose {
	a, b := &m.from[i], &m.to[i]
	if *a == *b || m.fraction == 0 {
		return *a
	}
	return cubePose{lerp(a.position, b.position, m.fraction), interpolate.Slerp(a.orientation, b.orientation, m.fraction)}
}

func lerp(a, b schema.Vec3, f float64) schema.Vec3 {
	return schema.Vec3{X: a.X + f*(b.X-a.X), Y: a.Y + f*(b.Y-a.Y), Z: a.Z + f*(b.Z-a.Z)}
}
