// Package schema describes the values that the codecs of this project send: their fields, how each
// field is quantized, and the frames of integers that result.
//
// A [Schema] lists the fields of a remote procedure call (RPC) or of a replicated object. [Compile]
// derives it from a Go struct and its tags, [Parse] reads it from a file, and [New] builds it from
// a list of fields. [Type.Quantize] rounds a struct to a [Frame] of integers, and [Type.Restore]
// writes a frame back into a struct:
//
//	type Move struct {
//		Location schema.Vec3    `uplink:"resolution=0.1,velocity=Velocity"` // cm
//		Velocity schema.Vec3    `uplink:"resolution=0.1"`                   // cm/s
//		Rotation schema.Rotator `uplink:"bits=16"`                          // degrees
//		Buttons  uint16
//	}
//
//	move, err := schema.Compile[Move]("ServerMove", 60)
//	...
//	frame := move.Schema().NewFrame()
//	err = move.Quantize(frame, &Move{Buttons: 1})
//
// A tag is a comma-separated list of options:
//
//	kind=K              the [Kind], if it is not the default of the Go type
//	resolution=R        size of one quantization step, in the unit of the value
//	min=A, max=B        range of a number; for a byte string, max=B is its maximum size in bytes
//	bits=N              size of an angle, or of each component of a quaternion or direction
//	width=N             size of an integer in bits
//	velocity=F          the field F is the rate of change of this field, per second
//	velocity_scale=S    factor from the unit of F to the unit of this field
//	urgent=B            whether a change may not wait for later frames; see [Field]
//
// Quantization is deterministic: the same value yields the same integers on every platform. The
// package contains no codec.
package schema
