// Package uplinktest contains helpers for the tests of client and ds: a network in memory whose
// sockets tests can watch and close, an RPC whose arguments are a function of the frame's number,
// and a journal that compares delivered frames with the ones that were sent.
package uplinktest

import (
	"bytes"
	"math"

	"github.com/uplink-rpc/uplink/internal/schema"
)

// Move is the argument of an RPC with fields of most kinds.
type Move struct {
	State
	Payload []byte `uplink:"max=48"`
}

// State is the comparable part of a Move.
type State struct {
	Location schema.Vec3    `uplink:"resolution=0.1,velocity=Velocity"`
	Velocity schema.Vec3    `uplink:"resolution=0.1"`
	Rotation schema.Rotator `uplink:"bits=16"`
	Aim      schema.Quat    `uplink:"bits=12"`
	Throttle float32        `uplink:"resolution=0.01"`
	Buttons  uint16
	Weapon   int8
	Crouched bool
}

// MoveAt returns call n of a player who runs in circles. The salt distinguishes players and RPCs.
// No two consecutive calls are equal.
func MoveAt(salt, n uint64) Move {
	t := float64(n)/60 + float64(salt)
	sin, cos := math.Sincos(t)
	m := Move{State: State{
		Location: schema.Vec3{X: 300 * cos, Y: 300 * sin, Z: 90 + float64(n%8)},
		Velocity: schema.Vec3{X: -300 * sin, Y: 300 * cos},
		Rotation: schema.Rotator{Pitch: 10 * sin, Yaw: 90 + 180*t/math.Pi},
		Aim:      schema.Quat{X: sin / 4, Y: cos / 4, Z: sin * cos, W: 1},
		Throttle: float32(math.Abs(sin)),
		Buttons:  uint16(1) << (n / 40 % 16),
		Weapon:   int8(n / 500),
		Crouched: n/90%2 == 1,
	}}
	if n%50 < 5 {
		m.Payload = bytes.Repeat([]byte{byte(n), byte(salt)}, int(n%50+n/50%20))
	}
	return m
}

// Equal reports whether both have the same values.
func (m *Move) Equal(o *Move) bool {
	return m.State == o.State && bytes.Equal(m.Payload, o.Payload)
}

// Quantizer rounds values as the wire does. It is not safe for concurrent use.
type Quantizer struct {
	typ   *schema.Type[Move]
	frame *schema.Frame
}

// NewQuantizer returns a Quantizer.
func NewQuantizer() *Quantizer {
	typ, err := schema.Compile[Move]("Move", 0)
	if err != nil {
		panic(err) // the fields of Move are valid
	}
	return &Quantizer{typ: typ, frame: typ.Schema().NewFrame()}
}

// Quantize returns m rounded to the resolutions of its fields.
func (q *Quantizer) Quantize(m *Move) (out Move, err error) {
	if err = q.typ.Quantize(q.frame, m); err == nil {
		err = q.typ.Restore(&out, q.frame)
	}
	return out, err
}
