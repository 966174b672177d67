// Package cubeset returns recordings of cubes as sets of package snapshot, for tests and
// measurements.
package cubeset

import (
	"fmt"

	"github.com/uplink-rpc/uplink/internal/cubes"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// Schema returns the schema of a recorded cube: orientation, position and whether it interacts.
func Schema() *snapshot.Schema {
	s, err := snapshot.NewSchema(
		snapshot.Field{Name: "Orientation", Class: schema.ClassQuat, N: 4, Hi: cubes.MaxComponent},
		snapshot.Field{Name: "Position", Class: schema.ClassNumber, N: 3, Lo: -1 << 17, Hi: 1<<17 - 1},
		snapshot.Field{Name: "Interacting", Class: schema.ClassInteger, N: 1, Hi: 1},
	)
	if err != nil {
		panic(err)
	}
	return s
}

// Of returns the frames of a recording as sets. An error names the frame and the cube that is out
// of bounds.
func Of(frames []cubes.Frame) ([]*snapshot.Set, error) {
	s := Schema()
	sets := make([]*snapshot.Set, len(frames))
	for n := range frames {
		sets[n] = s.NewSet()
		for i := range frames[n] {
			c := &frames[n][i]
			row := []int32{c.Largest, c.Smallest[0], c.Smallest[1], c.Smallest[2], c.Position[0], c.Position[1], c.Position[2], c.Interacting}
			if err := sets[n].Add(snapshot.Object{ID: uint16(i)}, row); err != nil {
				return nil, fmt.Errorf("frame %d: %w", n, err)
			}
		}
	}
	return sets, nil
}
