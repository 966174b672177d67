package rpcdelta

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/uplink-rpc/uplink/internal/schema"
)

func mustSchema(t testing.TB, fields ...schema.Field) *schema.Schema {
	t.Helper()
	s, err := schema.New("Test", 60, fields)
	must(t, err)
	return s
}

func mustCompile[T any](t testing.TB) *schema.Type[T] {
	t.Helper()
	c, err := schema.Compile[T]("Test", 60)
	must(t, err)
	return c
}

// ServerMove is a call of 20 components, typical for a shooter.
type ServerMove struct {
	Location     schema.Vec3    `uplink:"resolution=0.1,velocity=Velocity"`
	Velocity     schema.Vec3    `uplink:"resolution=0.1"`
	Acceleration schema.Vec3    `uplink:"resolution=0.1"`
	Rotation     schema.Rotator `uplink:"bits=16"`
	Aim          schema.Quat    `uplink:"bits=12"`
	Throttle     float32        `uplink:"resolution=0.01"`
	Steer        float32        `uplink:"resolution=0.01"`
	Buttons      uint16
	Weapon       uint8
	Payload      []byte `uplink:"max=64"`
}

// walk changes m to the next call of a sequence with small changes.
func (m *ServerMove) walk(rng *rand.Rand) {
	step := func(v *float64, by float64) { *v += by * (rng.Float64() - 0.5) }
	step(&m.Acceleration.X, 20)
	step(&m.Acceleration.Y, 20)
	m.Velocity.X += m.Acceleration.X / 60
	m.Velocity.Y += m.Acceleration.Y / 60
	m.Velocity.X *= 0.98
	m.Velocity.Y *= 0.98
	m.Location.X += m.Velocity.X / 60
	m.Location.Y += m.Velocity.Y / 60
	step(&m.Rotation.Yaw, 3)
	step(&m.Rotation.Pitch, 1)
	step(&m.Aim.X, 0.02)
	step(&m.Aim.Y, 0.02)
	step(&m.Aim.Z, 0.02)
	m.Aim.W = 1
	m.Throttle = float32(math.Min(1, math.Abs(m.Acceleration.X/100)))
	if rng.IntN(30) == 0 {
		m.Buttons ^= 1 << rng.IntN(16)
	}
	if rng.IntN(300) == 0 {
		m.Weapon++
	}
	if rng.IntN(60) == 0 {
		m.Payload = append(m.Payload[:0], make([]byte, rng.IntN(65))...)
	}
}
