package schema_test

import (
	"fmt"
	"log"

	"github.com/uplink-rpc/uplink/schema"
)

type Move struct {
	Location schema.Vec3    `uplink:"resolution=0.1"` // cm
	Rotation schema.Rotator `uplink:"bits=16"`        // degrees
	Throttle float32        `uplink:"resolution=0.01"`
	Buttons  uint16
}

func ExampleCompile() {
	move, err := schema.Compile[Move]("ServerMove", 60)
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range move.Schema().Fields() {
		fmt.Println(f)
	}
	f := move.Schema().NewFrame()
	err = move.Quantize(f, &Move{Location: schema.Vec3{X: 12.34, Y: -5}, Rotation: schema.Rotator{Yaw: 450}})
	fmt.Println(f.Ints, err)

	err = move.Quantize(f, &Move{Location: schema.Vec3{Z: 1e6}})
	fmt.Println(err)
	// Output:
	// Location vec3 resolution=0.1
	// Rotation angle count=3 bits=16
	// Throttle scalar resolution=0.01
	// Buttons uint width=16
	// [123 -50 0 0 16384 0 0 0] <nil>
	// schema: ServerMove: field "Location": value 1e+06, want -838860.7 to 838860.7
}

func ExampleParse() {
	s, err := schema.Parse([]byte(`{"rpc": "ServerMove", "rate_hz": 60, "fields": [
		{"name": "Position", "kind": "vec3", "columns": ["x", "y", "z"], "resolution": 0.001},
		{"name": "Aim", "kind": "angle", "columns": ["pitch", "yaw"]},
		{"name": "Payload", "kind": "bytes", "columns": ["payload_hex"], "max": 64}]}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.RPC(), s.RateHz(), s.Components())
	for _, f := range s.Fields() {
		fmt.Println(f)
	}

	_, err = schema.Parse([]byte(`{"rpc": "ServerMove", "fields": [{"name": "Position", "kind": "vec3"}]}`))
	fmt.Println(err)
	// Output:
	// ServerMove 60 5
	// Position vec3 resolution=0.001
	// Aim angle count=2 bits=16
	// Payload bytes max=64
	// schema: ServerMove: field "Position": resolution 0, want a size of one step above 0
}
