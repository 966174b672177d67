package bench

import (
	"math"

	"github.com/uplink-rpc/uplink/rpcdelta/inspect"
	"github.com/uplink-rpc/uplink/transport"
)

// Result is what one trace came to. Its JSON is the command's output.
type Result struct {
	Trace    string   `json:"trace"`
	Frames   int      `json:"frames"`
	RateHz   float64  `json:"rate_hz"`
	Link     *Link    `json:"link"` // null with a distance
	Distance int      `json:"distance,omitempty"`
	Suite    string   `json:"suite"`
	Codecs   []Counts `json:"codecs"`
}

// Link is the link as it was asked for.
type Link struct {
	RTTMs    float64 `json:"rtt_ms"`
	JitterMs float64 `json:"jitter_ms"`
	Loss     float64 `json:"loss"`
	Burst    float64 `json:"burst"`
	Seed     uint64  `json:"seed"`
}

// Counts is what one scheme came to. Bits are means over the frames that were sent, whether they arrived or not.
type Counts struct {
	Name            string  `json:"name"`
	FramesSent      int     `json:"frames_sent"`
	FramesDelivered int     `json:"frames_delivered"`
	DeliveredRatio  float64 `json:"delivered_ratio"`
	// FullBits is the frame as the engine packs it, without any header; PayloadBits the coded part; HeaderBits the
	// header of the message; DatagramBits that of the datagram; SealBits what sealing adds to it; IPBits the headers
	// of IP and UDP. WireBits is all but the first, payload and header in whole bytes.
	FullBits     float64 `json:"full_bits_per_frame"`
	PayloadBits  float64 `json:"payload_bits_per_frame"`
	HeaderBits   float64 `json:"header_bits_per_frame"`
	DatagramBits float64 `json:"datagram_bits_per_frame"`
	SealBits     float64 `json:"seal_bits_per_frame"`
	IPBits       float64 `json:"ip_udp_bits_per_frame"`
	WireBits     float64 `json:"wire_bits_per_frame"`
	// FullWireBits is a full frame in a sealed datagram of its own, without a header of the message.
	FullWireBits float64 `json:"full_wire_bits_per_frame"`
	// AckBits is the acks alone, AckWireBits the acks in sealed datagrams of their own.
	AckBits     float64 `json:"ack_bits_per_frame"`
	AckWireBits float64 `json:"ack_wire_bits_per_frame"`
	// IntraFrames were sent without a baseline.
	IntraFrames int `json:"intra_frames"`
	// Mismatches are delivered frames that differ from what was sent.
	Mismatches int `json:"mismatches"`
	// Undecodable are payloads that arrived in time and could not be used.
	Undecodable int     `json:"undecodable,omitempty"`
	EncodeNs    float64 `json:"encode_ns_per_frame"`
	DecodeNs    float64 `json:"decode_ns_per_frame"`
	Allocs      float64 `json:"allocs_per_frame"`

	// Fields is what each field takes of the bits.
	Fields []FieldBits `json:"fields,omitempty"`

	// Profile is what the encoder's payloads were spent on.
	Profile *inspect.Profile `json:"-"`
	// Arrived says of each frame whether it was delivered.
	Arrived []bool `json:"-"`

	// Lost is the share of the datagrams that the link lost, Late that of those that newer ones had overtaken.
	Lost float64 `json:"-"`
	Late float64 `json:"-"`
	// BaselineAge is the mean distance of a delta to its baseline, in frames.
	BaselineAge float64 `json:"-"`
	// EncodeFastest and DecodeFastest are EncodeNs and DecodeNs of the fastest pass.
	EncodeFastest float64 `json:"-"`
	DecodeFastest float64 `json:"-"`
}

// FieldBits is what one field takes of a frame: as the engine packs it, and in payloads, older frames
// included.
type FieldBits struct {
	Name        string  `json:"name"`
	FullBits    float64 `json:"full_bits_per_frame"`
	PayloadBits float64 `json:"payload_bits_per_frame"`
}

// messageType is the bytes ahead of acks.
const messageType = 1

// around is how many bytes there are around a message.
func (c *Config) around() int { return transport.HeaderSize + c.Suite.Overhead() + transport.IPSize }

// Saved is how much less than full frames the frames took, each of those in a datagram of its own: 0 to 1, or less than 0.
func (c *Counts) Saved() float64 { return 1 - c.WireBits/c.FullWireBits }

// UpKbits and DownKbits are what a client's datagrams and the acks to it take, in kbit/s.
func (c *Counts) UpKbits(rateHz float64) float64 { return c.WireBits * rateHz / 1000 }

// DownKbits is what the acks take, see UpKbits.
func (c *Counts) DownKbits(rateHz float64) float64 { return c.AckWireBits * rateHz / 1000 }

// share rounds a quotient to six digits behind the point, enough to read and compare.
func share(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return math.Round(float64(a)/float64(b)*1e6) / 1e6
}
