package rpcdelta_test

import (
	"fmt"
	"log"

	"github.com/uplink-rpc/uplink/rpcdelta"
)

type Move struct {
	Location rpcdelta.Vec3    `rpcdelta:"resolution=0.1"` // cm
	Rotation rpcdelta.Rotator `rpcdelta:"bits=16"`        // degrees
	Throttle float32          `rpcdelta:"resolution=0.01"`
	Buttons  uint16
}

func ExampleCompile() {
	move, err := rpcdelta.Compile[Move]("ServerMove", 60)
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range move.Schema().Fields() {
		fmt.Println(f)
	}
	// Output:
	// Location vec3 resolution=0.1
	// Rotation angle count=3 bits=16
	// Throttle scalar resolution=0.01
	// Buttons uint width=16
}

func ExampleType_Quantize() {
	move, err := rpcdelta.Compile[Move]("ServerMove", 60)
	if err != nil {
		log.Fatal(err)
	}
	f := move.Schema().NewFrame()
	err = move.Quantize(f, &Move{Location: rpcdelta.Vec3{X: 12.34, Y: -5}, Rotation: rpcdelta.Rotator{Yaw: 450}})
	fmt.Println(f.Ints, err)

	err = move.Quantize(f, &Move{Location: rpcdelta.Vec3{Z: 1e6}})
	fmt.Println(err)
	// Output:
	// [123 -50 0 0 16384 0 0 0] <nil>
	// rpcdelta: ServerMove: field "Location": value 1e+06, want -838860.7 to 838860.7
}

// A client's frame goes to the server, whose ack makes it the baseline of the
// next.
func Example() {
	move, err := rpcdelta.Compile[Move]("ServerMove", 60)
	if err != nil {
		log.Fatal(err)
	}
	enc, err := rpcdelta.NewEncoder(move.Schema(), rpcdelta.EncoderConfig{Codec: rpcdelta.Adaptive})
	if err != nil {
		log.Fatal(err)
	}
	dec, err := rpcdelta.NewDecoder(move.Schema(), rpcdelta.DecoderConfig{Codec: rpcdelta.Adaptive})
	if err != nil {
		log.Fatal(err)
	}
	frame := move.Schema().NewFrame()
	var payload, ack []byte
	for i := range 3 {
		// The client sends.
		v := Move{Location: rpcdelta.Vec3{X: 1000 + float64(i), Y: 200, Z: 88}, Rotation: rpcdelta.Rotator{Yaw: 90}, Buttons: 3}
		if err := move.Quantize(frame, &v); err != nil {
			log.Fatal(err)
		}
		if payload, _, err = enc.AppendFrame(payload[:0], frame); err != nil {
			log.Fatal(err)
		}
		// The server receives, and acknowledges.
		frames, err := dec.Decode(payload)
		if err != nil {
			log.Fatal(err)
		}
		for _, f := range frames {
			var got Move
			if err := move.Restore(&got, f.Frame); err != nil {
				log.Fatal(err)
			}
			fmt.Println(f.Seq, f.Kind, len(payload), "bytes, X", got.Location.X)
		}
		ack = dec.AppendAck(ack[:0])
		// The client learns what arrived.
		a, _, err := rpcdelta.ParseAck(ack)
		if err != nil {
			log.Fatal(err)
		}
		if err := enc.Ack(a); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// 0 reset 16 bytes, X 1000
	// 1 delta 4 bytes, X 1001
	// 2 delta 3 bytes, X 1002
}

func ExampleParseSchema() {
	s, err := rpcdelta.ParseSchema([]byte(`{"rpc": "ServerMove", "rate_hz": 60, "fields": [
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

	_, err = rpcdelta.ParseSchema([]byte(`{"rpc": "ServerMove", "fields": [{"name": "Position", "kind": "vec3"}]}`))
	fmt.Println(err)
	// Output:
	// ServerMove 60 5
	// Position vec3 resolution=0.001
	// Aim angle count=2 bits=16
	// Payload bytes max=64
	// rpcdelta: ServerMove: field "Position": resolution 0, want a size of one step above 0
}

// The paper's table: a vector in steps of a tenth, of at most 24 bits a
// component.
func ExamplePackedVectorBits() {
	for _, x := range []float64{0.1, 10, 1000, 100_000} {
		fmt.Println(x, rpcdelta.PackedVectorBits([]float64{x, 0, 0}, 10, 24))
	}
	// Output:
	// 0.1 11
	// 10 29
	// 1000 49
	// 100000 68
}
