package inspect

import (
	"encoding/json"

	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/rpcdelta/inspect"
)

// Stats counts frames, in JSON by names like those around it.
type Stats struct{ rpcdelta.Stats }

// named is [rpcdelta.Stats] by these names.
type named struct {
	Delta       uint64                             `json:"delta"`
	Keyframe    uint64                             `json:"intra"`
	Reset       uint64                             `json:"reset"`
	FullBits    uint64                             `json:"full_bits"`
	HeaderBits  uint64                             `json:"header_bits"`
	PayloadBits uint64                             `json:"payload_bits"`
	BaselineAge [len(inspect.AgeBounds) + 1]uint64 `json:"baseline_age"`
	AgeSum      uint64                             `json:"age_sum"`
	Redundant   uint64                             `json:"older"`
}

// MarshalJSON implements json.Marshaler.
func (s Stats) MarshalJSON() ([]byte, error) { return json.Marshal(named(s.Stats)) }

// UnmarshalJSON implements json.Unmarshaler.
func (s *Stats) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, (*named)(&s.Stats)) }
