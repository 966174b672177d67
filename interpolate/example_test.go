package interpolate_test

import (
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/schema"
)

// Crate is an object of a game.
type Crate struct {
	Position, Velocity schema.Vec3
	Rotation           schema.Quat
	Burning            bool
}

// crates is the adapter of Crate.
type crates struct{}

func (crates) Pose(c *Crate) interpolate.Pose {
	return interpolate.Pose{Position: c.Position, Velocity: c.Velocity, Orientation: c.Rotation}
}

func (crates) SetPose(c *Crate, p interpolate.Pose) {
	c.Position, c.Velocity, c.Rotation = p.Position, p.Velocity, p.Orientation
}

// A crate is thrown up at 1 m/s and shown between two snapshots, of ten per second.
func ExampleBuffer() {
	buffer, err := interpolate.New(crates{}, interpolate.Config{Interval: 100 * time.Millisecond, Method: interpolate.Hermite})
	if err != nil {
		fmt.Println(err)
		return
	}
	for server := time.Duration(0); server <= 400*time.Millisecond; server += 100 * time.Millisecond {
		t := server.Seconds()
		crate := Crate{Position: schema.Vec3{Z: t - 5*t*t}, Velocity: schema.Vec3{Z: 1 - 10*t}, Burning: t >= 0.1}
		received := server + 40*time.Millisecond // on the client's clock
		if err := buffer.Add(received, server, []uint32{17}, []Crate{crate}); err != nil {
			fmt.Println(err)
		}
	}
	var world interpolate.Sample[Crate]
	if buffer.Sample(440*time.Millisecond, &world) {
		fmt.Printf("object %d at %v: %.4f m, burning %v\n", world.IDs[0], world.Time, world.Objects[0].Position.Z, world.Objects[0].Burning)
	}
	// Output:
	// object 17 at 50ms: 0.0375 m, burning false
}
