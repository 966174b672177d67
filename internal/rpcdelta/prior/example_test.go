package prior_test

import (
	"context"
	"fmt"
	"math"

	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// Train a prior on a recording, and start both ends from it.
func ExampleTrain() {
	move, err := schema.New("Move", 60, []schema.Field{{Name: "X", Kind: schema.KindScalar, Resolution: 0.01}})
	if err != nil {
		fmt.Println(err)
		return
	}
	recording := prior.Recording{Schema: move}
	for i := range 1000 {
		f := move.NewFrame()
		if err := move.QuantizeField(f, 0, []float64{100 * math.Sin(float64(i)/50)}); err != nil {
			fmt.Println(err)
			return
		}
		recording.Frames = append(recording.Frames, *f)
	}
	trained, err := prior.Train(context.Background(), []prior.Recording{recording}, prior.TrainConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	file := trained.Append(nil) // to be shipped with client and server

	prior, err := prior.Parse(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	enc, err := rpcdelta.NewEncoder(move, rpcdelta.EncoderConfig{Prior: prior})
	if err != nil {
		fmt.Println(err)
		return
	}
	dec, err := rpcdelta.NewDecoder(move, rpcdelta.DecoderConfig{Prior: prior})
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
