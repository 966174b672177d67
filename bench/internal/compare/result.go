package compare

import "github.com/uplink-rpc/uplink/bench/internal/peer"

// Result is what one trace came to. Its JSON is part of the command's output.
type Result struct {
	Trace  string  `json:"trace"`
	RateHz float64 `json:"rate_hz"`
	// Training and Measured are the frames of the two halves.
	Training int      `json:"frames_training"`
	Measured int      `json:"frames_measured"`
	Schemes  []Scheme `json:"schemes"`
}

// Own is the class of this project's codecs, and of the paper's.
const Own peer.Class = "own"

// Scheme is what a scheme came to.
type Scheme struct {
	Name  string     `json:"name"`
	Class peer.Class `json:"class"`
	// Form is how differences were laid out for it; empty where there is no choice.
	Form peer.Form `json:"form,omitempty"`
	// Note is what to know about it, if anything.
	Note   string  `json:"note,omitempty"`
	Points []Point `json:"points"`
	// Nanoseconds of a frame sent and of a payload that arrived, of the fastest pass.
	EncodeNs float64 `json:"encode_ns,omitempty"`
	DecodeNs float64 `json:"decode_ns,omitempty"`
}

// Point is what a scheme came to at one loss.
type Point struct {
	Loss float64 `json:"loss"`
	// Bits are those of all payloads, in whole bytes, and of their messages' headers, over the frames delivered.
	Bits float64 `json:"bits_per_delivered_frame"`
	// PayloadBits are those of the payloads alone, over the frames sent.
	PayloadBits float64 `json:"payload_bits_per_frame_sent"`
	Delivered   float64 `json:"delivered_ratio"`
	Mismatches  int     `json:"mismatches"`
}

// at is the scheme of a name, or nil.
func (r *Result) at(name string) *Scheme {
	for i := range r.Schemes {
		if r.Schemes[i].Name == name {
			return &r.Schemes[i]
		}
	}
	return nil
}
