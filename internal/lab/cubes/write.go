package cubes

import (
	"encoding/binary"
	"math"

	"github.com/uplink-rpc/uplink/schema"
)

// Append appends a frame as [Read] reads it, and returns the extended slice.
func Append(dst []byte, f *Frame) []byte {
	for i := range f {
		c := &f[i]
		for _, v := range [integers]int32{
			c.Largest, c.Smallest[0], c.Smallest[1], c.Smallest[2], c.Position[0], c.Position[1], c.Position[2], c.Interacting,
		} {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(v))
		}
	}
	return dst
}

// Turn sets the cube's orientation to q, of length 1, as near as there is one.
func (c *Cube) Turn(q schema.Quat) {
	e := [4]float64{q.X, q.Y, q.Z, q.W}
	c.Largest = 0
	for i := range e {
		if math.Abs(e[i]) > math.Abs(e[c.Largest]) {
			c.Largest = int32(i)
		}
	}
	sign := math.Copysign(1, e[c.Largest])
	k := 0
	for i, v := range e {
		if i == int(c.Largest) {
			continue
		}
		c.Smallest[k] = max(0, min(MaxComponent, int32(math.Floor((v*sign*math.Sqrt2+1)/2*MaxComponent+0.5))))
		k++
	}
}

// Move sets the cube's position to the nearest step.
func (c *Cube) Move(meters schema.Vec3) {
	for i, v := range [3]float64{meters.X, meters.Y, meters.Z} {
		c.Position[i] = int32(math.Floor(v*Unit + 0.5))
	}
}
