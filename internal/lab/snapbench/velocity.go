package snapbench

import (
	"math"

	"github.com/uplink-rpc/uplink/internal/lab/cubes"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
)

const (
	// velocityUnit is the number of steps per m/s.
	velocityUnit = 32
	// maxVelocity bounds each component, in steps: 64 m/s.
	maxVelocity = 1 << 11
	// position is the first component of the position.
	position = 4
)

// moving returns the schema of a recorded cube with a velocity.
func moving() *snapshot.Schema {
	fields := append(Cubes().Fields(), snapshot.Field{Name: "Velocity", Class: schema.ClassNumber, N: 3, Lo: -maxVelocity, Hi: maxVelocity - 1})
	s, err := snapshot.NewSchema(fields...)
	if err != nil {
		panic(err)
	}
	return s
}

// move sets dst to frame n with velocities by central difference, limited to their bounds.
func move(dst *snapshot.Set, sets []*snapshot.Set, n int) {
	from, to := max(n-1, 0), min(n+1, len(sets)-1)
	scale := float64(velocityUnit*cubes.Rate) / float64(cubes.Unit*(to-from))
	dst.Reset()
	var row []int32
	for i := range sets[n].Len() {
		row = append(row[:0], sets[n].Row(i)...)
		a, b := sets[from].Row(i), sets[to].Row(i)
		for k := position; k < position+3; k++ {
			v := math.Round(float64(b[k]-a[k]) * scale)
			row = append(row, int32(max(-maxVelocity, min(maxVelocity-1, v))))
		}
		if err := dst.Add(sets[n].Object(i), row); err != nil {
			panic(err) // it is within its bounds
		}
	}
}
