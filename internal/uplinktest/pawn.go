package uplinktest

import (
	"math"

	"github.com/uplink-rpc/uplink/internal/schema"
)

// Pawn is a movement call with 20 components, typical of a shooter.
type Pawn struct {
	Time         float64        `uplink:"resolution=0.001"`
	Acceleration schema.Vec3    `uplink:"resolution=0.1"`
	Location     schema.Vec3    `uplink:"resolution=0.1,velocity=Velocity"`
	Velocity     schema.Vec3    `uplink:"resolution=0.1"`
	View         schema.Rotator `uplink:"bits=16"`
	Aim          schema.Quat    `uplink:"bits=12"`
	Buttons      uint16
	Mode         uint8
	Base         uint32
}

// PawnAt returns call n at 60 Hz of a player who runs in circles and looks around.
func PawnAt(n int) Pawn {
	t := float64(n) / 60
	sin, cos := math.Sincos(t)
	look, nod := math.Sincos(t / 3)
	return Pawn{
		Time:         t,
		Acceleration: schema.Vec3{X: -2048 * cos, Y: -2048 * sin},
		Location:     schema.Vec3{X: 12_000 + 600*cos, Y: -4000 + 600*sin, Z: 90},
		Velocity:     schema.Vec3{X: -600 * sin, Y: 600 * cos},
		View:         schema.Rotator{Pitch: 20 * nod, Yaw: 90 + 180*t/math.Pi},
		Aim:          schema.Quat{X: look / 4, Y: sin / 4, Z: look, W: 1},
		Buttons:      uint16(1) << (n / 40 % 16),
		Mode:         uint8(n / 300 % 6),
		Base:         77,
	}
}
