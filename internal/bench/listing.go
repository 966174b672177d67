package bench

import (
	"math"

	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/inspect"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// Listed describes one frame of a scheme that run-length codes, as Config.List requests.
type Listed struct {
	Seq      uint64  `json:"seq"`
	Baseline *uint64 `json:"baseline"` // null for a frame without one
	// NumberBits is the size of the subtracted numbers. XORBytes is the size of the XORed fields,
	// and RLEBytes their size after run-length coding.
	NumberBits int `json:"number_bits"`
	XORBytes   int `json:"xor_bytes"`
	RLEBytes   int `json:"rle_bytes"`
	// HeaderBits and PayloadBits are the sizes on the wire, FullBits that of the frame without a
	// baseline and packed as an engine does it.
	HeaderBits  int  `json:"header_bits"`
	PayloadBits int  `json:"payload_bits"`
	FullBits    int  `json:"full_bits"`
	Arrived     bool `json:"arrived"`
}

// list adds a frame that was encoded, and whose parts the profile measured, to the listing.
func (p *pair) list(info *rpcdelta.Info) {
	s := p.trace.Schema
	var numbers, binary float64
	for i, l := range s.Layouts() {
		if l.Class == schema.ClassInteger || l.Class == schema.ClassBytes {
			binary += p.profile.Fields[i].Bits
		} else {
			numbers += p.profile.Fields[i].Bits
		}
	}
	row := Listed{
		Seq: info.Seq, NumberBits: int(math.Round(numbers)),
		XORBytes: inspect.BinaryBytes(s, p.frame(int(info.Seq))), RLEBytes: int(math.Round(binary)) / 8,
		HeaderBits: 8 * p.scheme.header, PayloadBits: info.PayloadBits, FullBits: info.FullBits,
	}
	if p.scheme.header == 0 {
		row.HeaderBits = info.HeaderBits
	}
	if info.Kind == rpcdelta.Delta {
		base := info.Seq - uint64(info.BaselineAge)
		row.Baseline = &base
	}
	p.listed = append(p.listed, row)
	*p.profile = *rpcdelta.NewProfile(s)
}
