// Package inspect looks into payloads of package rpcdelta: their headers, their parts, and the bits
// that each part takes. It is for tools and tests; an endpoint does not need it.
package inspect

import "github.com/uplink-rpc/uplink/internal/rpcdelta/wire"

// Header is the header of a payload, as far as it can be parsed without the stream.
type Header struct {
	// RPC is the number of the RPC. Long reports the long form of the header, Bits its length.
	RPC  int
	Long bool
	Bits int
	// Seq is the low bits of the sequence number: 7 in a short header, 16 in a long one.
	Seq uint16
	// Distance is the distance to the baseline in frames. If it is 0, there is no baseline, and
	// Epoch is the epoch of the frame.
	Distance int
	Epoch    uint8
	// Checked reports whether there is a Hash of the baseline and of the learned state.
	Checked bool
	Hash    uint16
}

// ParseHeader parses the header of a payload.
func ParseHeader(payload []byte) (Header, error) {
	h, err := wire.Parse(payload)
	if err != nil {
		return Header{}, err
	}
	return Header{
		RPC: int(h.RPC), Long: h.Long, Bits: h.Bits(), Seq: h.Seq,
		Distance: h.Distance, Epoch: h.Epoch, Checked: h.Checked, Hash: h.Hash,
	}, nil
}
