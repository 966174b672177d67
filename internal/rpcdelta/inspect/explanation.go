package inspect

import "github.com/uplink-rpc/uplink/internal/schema"

// Explanation describes the parts of one payload, for people; see rpcdelta.Decoder.Explain.
type Explanation struct {
	// Frames are the frames of the payload, oldest first. Newest is the sequence number of the last
	// one. Base is the baseline, nil if there is none, and BaseSeq its sequence number.
	Newest, BaseSeq uint64
	Frames          []*schema.Frame
	Base            *schema.Frame
	// CountBits is the cost of the number of frames. Parts are in coding order.
	CountBits float64
	Parts     []Part
}

// PartKind is the kind of a Part.
type PartKind uint8

// The kinds of parts.
const (
	// PartFlags is a part without a component: flags, a common length, the index of a quat.
	PartFlags PartKind = iota
	// PartComponent is a component.
	PartComponent
	// PartContents is a byte string.
	PartContents
)

// Part is one part of a payload.
type Part struct {
	Kind PartKind
	// Frame is the index of the frame, Field the index of the field in the schema. Component is the
	// index of the component in the field, not counting the index of a quat.
	Frame, Field, Component int
	// Bits is the cost of the part, in fractions of bits.
	Bits float64
	// Value is the value of the component. If Held is set, it equals its reference: the value in
	// the frame before, or in the baseline. Otherwise Predictor identifies the method that
	// predicted it, see [PredictorName]. If Forecasts is set, Forecast is the predicted value, and
	// Residual is the difference of Value from it.
	Value     int32
	Predictor int
	Held      bool
	Residual  int64
	Forecast  int64
	Forecasts bool
}
