package analysis

import "github.com/uplink-rpc/uplink/cmd/uplink/internal/residual"

// Report is what a trace came to. All bits are a frame's, on average. Its JSON is the command's output.
type Report struct {
	Trace  string  `json:"trace"`
	Frames int     `json:"frames"`
	RateHz float64 `json:"rate_hz"`
	// Run says how frames and their baselines lay apart.
	Run string `json:"run"`
	// FullBits is what the engine's packing takes; the others are what the codec adaptive took: PayloadBits are the sum
	// of all fields', of CountBits, which say how many frames a payload has, and of RoundingBits to whole bytes.
	FullBits     float64 `json:"full_bits"`
	HeaderBits   float64 `json:"header_bits"`
	PayloadBits  float64 `json:"payload_bits"`
	CountBits    float64 `json:"count_bits"`
	RoundingBits float64 `json:"rounding_bits"`
	// FloorDistance is how many frames lay between a frame and its baseline for the fields' FloorBits, 0 if the trace
	// is too short.
	FloorDistance int     `json:"floor_distance"`
	Fields        []Field `json:"fields"`
}

// Field is what one field took.
type Field struct {
	Name     string  `json:"name"`
	Kind     string  `json:"kind"`
	FullBits float64 `json:"full_bits"`
	Bits     float64 `json:"bits"`
	FlagBits float64 `json:"flag_bits"`
	// FloorBits is what the field might take if far more were known than a receiver can know, see docs/codec.md;
	// absent of byte strings and of traces that are too short.
	FloorBits  *float64    `json:"floor_bits,omitempty"`
	Components []Component `json:"components,omitempty"`
}

// Component is what one component took.
type Component struct {
	Name string  `json:"name"`
	Bits float64 `json:"bits"`
	// Held is the share of frames in which it was said to be as its reference, Zeros that in which the forecast was
	// exact, of those that had a residual.
	Held  float64 `json:"held"`
	Zeros float64 `json:"zeros"`
	// Used is how often each predictor of the codec made the forecast, of what was not held.
	Used []Share `json:"used,omitempty"`
	// Predictors are what others would have made of it, each alone.
	Predictors []Predictor `json:"predictors,omitempty"`
}

// Share is one of several parts, 0 to 1.
type Share struct {
	Name  string  `json:"name"`
	Share float64 `json:"share"`
}

// Predictor is what one predictor alone would have made of a component, over all frames that have a baseline, held ones
// too: the residuals that it leaves, in steps, and the Bits that a flag and, where that says that the component changed,
// an ideal adaptive code ([residual.Ideal]) take. All learn from the frames that both ends know then.
type Predictor struct {
	Name string  `json:"name"`
	Bits float64 `json:"bits"`
	residual.Stats
}

// Best is the predictor that takes least, nil if there is none.
func (c *Component) Best() *Predictor {
	var best *Predictor
	for i := range c.Predictors {
		if p := &c.Predictors[i]; best == nil || p.Bits < best.Bits {
			best = p
		}
	}
	return best
}
