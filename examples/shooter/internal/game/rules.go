// Package game is a game of laser tag, with its server, its clients and bots that play it. It shows
// how the packages of uplink work together: each client predicts its own player (package predict)
// and sees the others in the past (package interpolate), and the server decides each shot by the
// scene that the shooter saw (package rewind).
package game

import (
	"math"
	"time"

	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/schema"
)

const (
	// TickHz is the number of ticks per second of the server and of its clients.
	TickHz = 60
	// Tick is the time between two ticks.
	Tick = time.Second / TickHz
	// Delay is the interpolation delay of all clients. It covers 80 ms of jitter and the loss of
	// three consecutive snapshots.
	Delay = 130 * time.Millisecond
	// Method is the interpolation method of all clients. Linear interpolation would cut the corners
	// of jumps where snapshots are lost.
	Method = interpolate.Hermite

	// Radius is the radius of a player, which is a ball, in meters.
	Radius = 0.5
	// Range is the range of a shot, in meters.
	Range = 30
	// Cooldown is the number of moves between two shots of a player.
	Cooldown = TickHz / 4

	speed, jumpSpeed    = 6, 6.5    // m/s
	gravity             = 18 * step // change of the velocity in a tick, m/s
	groundGrip, airGrip = 45 * step, 8 * step
	step                = 1.0 / TickHz // seconds
	positionSteps       = 512          // a meter
	velocitySteps       = 64           // a m/s
	maxFall             = 6.5          // m/s
	maxOriginError      = 1            // meters
	outTicks            = 2 * TickHz
	minMeasurements     = 5  // minimum number of round-trip time measurements
	enterRange          = 40 // distance in meters at which players begin to see each other
	leaveRange          = 48 // distance in meters at which they stop seeing each other
)

// Time returns the server time of a tick.
func Time(tick uint64) time.Duration { return time.Duration(tick) * time.Second / TickHz }

// Keys that a player holds.
const (
	KeyForward = 1 << iota
	KeyBack
	KeyLeft
	KeyRight
	KeyJump
)

// Look is where a player looks, in degrees: a yaw of 0 is along x, one of 90 along y, a positive
// pitch is upwards.
type Look struct {
	Yaw   schema.Angle `uplink:"bits=16"`
	Pitch schema.Angle `uplink:"bits=16"`
}

// direction returns a vector of length 1.
func direction(r schema.Rotator) schema.Vec3 {
	sin, cos := math.Sincos(r.Yaw * math.Pi / 180)
	up, along := math.Sincos(r.Pitch * math.Pi / 180)
	return schema.Vec3{X: cos * along, Y: sin * along, Z: up}
}

// rounded returns the angles that arrive at the server.
func (l Look) rounded() Look {
	round := func(a schema.Angle) schema.Angle {
		return schema.Angle(float64(int16(int64(math.Round(float64(a)*65536/360)))) * 360 / 65536)
	}
	return Look{round(l.Yaw), round(l.Pitch)}
}

// Move is the RPC of a tick, with the player's input.
type Move struct {
	Keys uint8 `uplink:"kind=bits,width=5"`
	Look
	// Fired is the last shot. It does not change until the next one, so it costs almost nothing to
	// repeat it, and the loss of a move loses no shot.
	Fired
}

// Fired is a shot.
type Fired struct {
	// Shot is the sequence number of the move of the same tick; 0 means that there was no shot.
	Shot uint32
	// Shown is the server time that the player saw, in milliseconds.
	Shown  uint32
	Origin schema.Vec3    `uplink:"resolution=0.001953125"`
	Aim    schema.Rotator `uplink:"bits=16"`
}

// Body is the state of a player that moves change.
type Body struct {
	Position schema.Vec3 `uplink:"resolution=0.001953125,min=-64,max=64,velocity=Velocity" interpolate:"position"`
	Velocity schema.Vec3 `uplink:"resolution=0.015625,min=-64,max=64" interpolate:"velocity"`
	Grounded bool
}

// Player is a player as clients see it.
type Player struct {
	Body
	Yaw   schema.Angle `uplink:"bits=8"`
	Pitch schema.Angle `uplink:"bits=8"`
	// Armed reports that the player can fire. It cannot until the server knows its connection.
	Armed bool
	Out   bool // it was hit less than two seconds ago
	Score uint16
}

// Shot is the server's decision about a shot, for the shooter and the players nearby.
type Shot struct {
	// Shooter and Target are ids of players. Target is 0 if no player was hit.
	Shooter, Target uint16
	// Shot is the Shot of Fired.
	Shot uint32
	// Counts reports whether the shot is a point for the shooter, because neither player was out.
	Counts   bool
	From, To schema.Vec3 `uplink:"resolution=0.01"`
}

// Step moves a body by a tick. Server and client use it and get the same result, because it depends
// only on its arguments, and rounds the result to the resolution of snapshots.
func Step(b *Body, m *Move) {
	sin, cos := math.Sincos(float64(m.Yaw) * math.Pi / 180)
	ahead, left := axis(m.Keys, KeyForward, KeyBack), axis(m.Keys, KeyLeft, KeyRight)
	if ahead != 0 && left != 0 {
		ahead, left = ahead*math.Sqrt2/2, left*math.Sqrt2/2
	}
	grip := airGrip
	if b.Grounded {
		grip = groundGrip
		if m.Keys&KeyJump != 0 {
			b.Velocity.Z = jumpSpeed
		}
	}
	v := &b.Velocity
	dx, dy := speed*(ahead*cos-left*sin)-v.X, speed*(ahead*sin+left*cos)-v.Y
	if d := math.Hypot(dx, dy); d > grip {
		dx, dy = dx*grip/d, dy*grip/d
	}
	v.X, v.Y, v.Z = v.X+dx, v.Y+dy, max(v.Z-gravity, -maxFall)
	b.Grounded = false
	b.slide(&b.Position.X, &v.X)
	b.slide(&b.Position.Y, &v.Y)
	b.Grounded = b.slide(&b.Position.Z, &v.Z)
	b.Position, b.Velocity = rounded(b.Position, positionSteps), rounded(b.Velocity, velocitySteps)
}

// axis returns 1 if a player holds one key, -1 if it holds the other one.
func axis(keys, plus, minus uint8) (n float64) {
	if keys&plus != 0 {
		n++
	}
	if keys&minus != 0 {
		n--
	}
	return n
}

// rounded returns v with a number of steps per unit.
func rounded(v schema.Vec3, steps float64) schema.Vec3 {
	return schema.Vec3{X: math.Round(v.X*steps) / steps, Y: math.Round(v.Y*steps) / steps, Z: math.Round(v.Z*steps) / steps}
}

// slide moves one coordinate of a body, up to the first block, and reports whether it moved down
// onto one.
func (b *Body) slide(at, v *float64) (landed bool) {
	*at += *v * step
	for i := range Blocks {
		k := &Blocks[i]
		p := &b.Position
		if !k.contains(*p, Radius) {
			continue
		}
		low, high := k.bounds(p, at)
		if landed = *v < 0; landed {
			*at = high + Radius
		} else {
			*at = low - Radius
		}
		*v = 0
	}
	return landed
}
