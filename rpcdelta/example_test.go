package rpcdelta_test

import (
	"fmt"
	"log"

	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
)

type Move struct {
	Location schema.Vec3    `uplink:"resolution=0.1"` // cm
	Rotation schema.Rotator `uplink:"bits=16"`        // degrees
	Throttle float32        `uplink:"resolution=0.01"`
	Buttons  uint16
}

// A client sends frames to a server. The server's ack makes a frame the baseline of later frames.
func Example() {
	move, err := schema.Compile[Move]("ServerMove", 60)
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
		v := Move{Location: schema.Vec3{X: 1000 + float64(i), Y: 200, Z: 88}, Rotation: schema.Rotator{Yaw: 90}, Buttons: 3}
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
