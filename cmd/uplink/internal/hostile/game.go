package hostile

import (
	"math"

	"github.com/uplink-rpc/uplink/schema"
)

// move is the call of honest players.
type move struct {
	Location schema.Vec3 `uplink:"resolution=0.1"`
	View     schema.Vec3 `uplink:"resolution=0.01,min=-360,max=360"`
	Tick     uint32
	Buttons  uint16
}

// moveAt is a player's call at a tick.
func moveAt(player int, tick uint64) move {
	at := float64(tick) / 60
	sin, cos := math.Sincos(at/2 + float64(player))
	return move{
		Location: schema.Vec3{X: 500 * sin, Y: 500 * cos, Z: 90},
		View:     schema.Vec3{X: 30 * sin, Y: math.Mod(at*40, 360), Z: 0},
		Tick:     uint32(tick),
		Buttons:  uint16(tick / 30 % 16),
	}
}

// object is an object of the worlds.
type object struct {
	Position schema.Vec3 `uplink:"resolution=0.01,min=-1000,max=1000"`
	Rotation schema.Quat `uplink:"bits=11"`
	Lit      bool
}

// objects is the number of objects of each world: every third one rests.
const objects = 128

// objectAt is an object at a tick.
func objectAt(i int, tick uint64) object {
	if i%3 == 0 {
		tick = 0
	}
	sin, cos := math.Sincos(float64(tick)/60 + float64(i))
	return object{
		Position: schema.Vec3{X: 3*float64(i%16) + 5*cos, Y: 3*float64(i/16) + 5*sin},
		Rotation: schema.Quat{X: sin / 2, Y: cos / 2, Z: 0.3, W: 1},
		Lit:      (tick/60+uint64(i))%7 == 0,
	}
}

// What the server offers.
const (
	moveRPC       = "Move"
	snapshotWorld = "snapshots"
	stateWorld    = "state"
	tickHz        = 60
	sendHz        = 30
)
