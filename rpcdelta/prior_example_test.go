package rpcdelta_test

import (
	"context"
	"fmt"
	"math"

	"github.com/uplink-rpc/uplink/rpcdelta"
)

// Train a prior on a recording, and start both ends from it.
func ExampleTrainPrior() {
	schema, err := rpcdelta.NewSchema("Move", 60, []rpcdelta.Field{{Name: "X", Kind: rpcdelta.KindScalar, Resolution: 0.01}})
	if err != nil {
		fmt.Println(err)
		return
	}
	recording := rpcdelta.Recording{Schema: schema}
	for i := range 1000 {
		f := schema.NewFrame()
		if err := schema.QuantizeField(f, 0, []float64{100 * math.Sin(float64(i)/50)}); err != nil {
			fmt.Println(err)
			return
		}
		recording.Frames = append(recording.Frames, *f)
	}
	trained, err := rpcdelta.TrainPrior(context.Background(), []rpcdelta.Recording{recording}, rpcdelta.TrainConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	file := trained.Append(nil) // to be shipped with client and server

	prior, err := rpcdelta.ParsePrior(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	enc, err := rpcdelta.NewEncoder(schema, rpcdelta.EncoderConfig{Prior: prior})
	if err != nil {
		fmt.Println(err)
		return
	}
	dec, err := rpcdelta.NewDecoder(schema, rpcdelta.DecoderConfig{Prior: prior})
	if err != nil {
		fmt.Println(err)
		return
	}
	payload, _, err := enc.AppendFrame(nil, &recording.Frames[0])
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := dec.Decode(payload)
	fmt.Println(prior.Fields(), "field known;", len(out), "frame came;", err)
	// Output: 1 field known; 1 frame came; <nil>
}
