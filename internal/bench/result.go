package bench

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
)

// Result is the result of one trace, and the JSON output of the command.
type Result struct {
	Trace    string   `json:"trace"`
	Frames   int      `json:"frames"`
	RateHz   float64  `json:"rate_hz"`
	Link     *Link    `json:"link"` // null with a distance
	Distance int      `json:"distance,omitempty"`
	Suite    string   `json:"suite"` // cipher suite of all codecs: several names if they differ
	Codecs   []Counts `json:"codecs"`
}

// Link is the configured link.
type Link struct {
	RTTMs    float64 `json:"rtt_ms"`
	JitterMs float64 `json:"jitter_ms"`
	Loss     float64 `json:"loss"`
	Burst    float64 `json:"burst"`
	Seed     uint64  `json:"seed"`
}

// Counts is the result of one scheme. Bits are means over all frames sent.
type Counts struct {
	Name            string  `json:"name"`
	Preset          string  `json:"preset,omitempty"`
	Suite           string  `json:"suite"`
	FramesSent      int     `json:"frames_sent"`
	FramesDelivered int     `json:"frames_delivered"`
	DeliveredRatio  float64 `json:"delivered_ratio"`
	// FullBits is the full frame without headers, PayloadBits the coded part, HeaderBits the
	// message header, DatagramBits the datagram header, AEADBits the AEAD overhead, IPBits the
	// headers of IP and UDP. WireBits is the sum of all but FullBits, with payload and header in
	// whole bytes.
	FullBits     float64 `json:"full_bits_per_frame"`
	PayloadBits  float64 `json:"payload_bits_per_frame"`
	HeaderBits   float64 `json:"header_bits_per_frame"`
	DatagramBits float64 `json:"datagram_bits_per_frame"`
	AEADBits     float64 `json:"aead_bits_per_frame"`
	IPBits       float64 `json:"ip_udp_bits_per_frame"`
	WireBits     float64 `json:"wire_bits_per_frame"`
	// FullWireBits is the size of a full frame in an encrypted datagram of its own, with
	// endpoint.FullOverhead, whatever the suite.
	FullWireBits float64 `json:"full_wire_bits_per_frame"`
	// AckBits is the size of the acks, AckWireBits their size if each is sent in an encrypted
	// datagram of its own.
	AckBits     float64 `json:"ack_bits_per_frame"`
	AckWireBits float64 `json:"ack_wire_bits_per_frame"`
	// WireBothBits is WireBits and the acks: their own bytes if they are piggybacked, otherwise in
	// datagrams of their own. WireRatio divides it by FullWireBits.
	WireBothBits float64 `json:"wire_both_bits_per_frame"`
	WireRatio    float64 `json:"wire_ratio"`
	// BatchedRatio is the wire ratio of full frames in the same datagrams: the batching without a
	// codec, redundancy and acks.
	BatchedRatio float64 `json:"batched_ratio"`
	// BatchedRLERatio is the wire ratio of rle in the datagrams of a preset, with the baselines and
	// acks of the preset, but without redundancy: it delivers the frames of datagrams that arrive.
	BatchedRLERatio float64 `json:"batched_rle_ratio,omitempty"`
	// DelayMsMean is the mean time from a frame's Send to its first arrival, less the one-way
	// delay.
	DelayMsMean float64 `json:"delay_ms_mean"`
	// UrgentDelayMsMax is the maximum time from Send to the departure of a frame in which a bit or
	// bool changed, and UrgentPerSecond the number of these frames a second.
	UrgentDelayMsMax float64 `json:"urgent_delay_ms_max"`
	UrgentPerSecond  float64 `json:"urgent_frames_per_s"`
	// DatagramsPerSecond is the rate of the client's datagrams.
	DatagramsPerSecond float64 `json:"datagrams_per_s"`
	// Keyframes is the number of frames sent without a baseline.
	Keyframes int `json:"keyframes"`
	// Mismatches is the number of delivered frames that differ from the sent frames.
	Mismatches int `json:"mismatches"`
	// Undecodable counts payloads that arrived in time but could not be decoded.
	Undecodable int     `json:"undecodable,omitempty"`
	EncodeNs    float64 `json:"encode_ns_per_frame"`
	DecodeNs    float64 `json:"decode_ns_per_frame"`
	Allocs      float64 `json:"allocs_per_frame"`

	// Fields contains the bits of each field.
	Fields []FieldBits `json:"fields,omitempty"`
	// Listed contains the first frames.
	Listed []Listed `json:"listed,omitempty"`

	// Profile counts the bits of the encoder's payloads.
	Profile *rpcdelta.Profile `json:"-"`
	// Arrived reports for each frame whether it was delivered.
	Arrived []bool `json:"-"`

	// Lost is the share of lost datagrams. Late is the share of the frames that reached the server
	// in some payload, but were not delivered in time.
	Lost float64 `json:"-"`
	Late float64 `json:"-"`
	// BaselineAge is the mean distance of a delta to its baseline, in frames.
	BaselineAge float64 `json:"-"`
	// EncodeFastest and DecodeFastest are EncodeNs and DecodeNs of the fastest pass.
	EncodeFastest float64 `json:"-"`
	DecodeFastest float64 `json:"-"`
}

// suites returns the names of the suites of all codecs.
func (r *Result) suites() string {
	var names []string
	for i := range r.Codecs {
		if s := r.Codecs[i].Suite; !slices.Contains(names, s) {
			names = append(names, s)
		}
	}
	return strings.Join(names, ", ")
}

// FieldBits contains the bits of one field per frame: packed by an engine, and in payloads with
// redundancy.
type FieldBits struct {
	Name        string  `json:"name"`
	FullBits    float64 `json:"full_bits_per_frame"`
	PayloadBits float64 `json:"payload_bits_per_frame"`
}

// messageType is the size of the message type before an ack, in bytes.
const messageType = 1

// bundleLength is the size in bytes of the length of each message of a bundle but the last.
const bundleLength = 1

// around returns the overhead of a message in bytes.
func (c *Config) around() int { return endpoint.HeaderSize + c.Suite.Overhead() + endpoint.IPSize }

// UpKbits returns the rate of a client's datagrams, in kbit/s.
func (c *Counts) UpKbits(rateHz float64) float64 { return c.WireBits * rateHz / 1000 }

// BatchedKbits returns the rate of full frames in the same datagrams, in kbit/s: the batching
// without a codec, redundancy and acks.
func (c *Counts) BatchedKbits(rateHz float64) float64 {
	return c.BatchedRatio * c.FullWireBits * rateHz / 1000
}

// DownKbits returns the rate of the acks, in kbit/s: piggybacked ones without the datagrams.
func (c *Counts) DownKbits(rateHz float64) float64 {
	return (c.WireBothBits - c.WireBits) * rateHz / 1000
}

// share returns a quotient rounded to six decimals.
func share(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return math.Round(float64(a)/float64(b)*1e6) / 1e6
}

type tally struct {
	frames, inTime, late, delivered              int // counts of the frames that count
	sent, messages, lost                         int // frames, datagrams and lost datagrams of payloads that count
	mismatches, undecodable                      int // counts of all frames
	intra, deltas, ages                          int
	fullBits, payloadBits, headerBits, frameBits int
	acks, ackBytes                               int
	urgent                                       int
	rleBits                                      int // bits of the datagrams' messages if rle coded them
	delay, urgentDelay                           time.Duration
}

// frame counts a message of size bytes and its frames. The size includes the codec's header.
func (t *tally) frame(s *scheme, info rpcdelta.Info, size int) {
	header := cmp.Or(8*s.header, info.HeaderBits)
	t.sent += 1 + info.Held
	t.messages++
	t.fullBits += info.FullBits
	t.payloadBits += info.PayloadBits
	t.headerBits += header
	t.frameBits += header + 8*size - info.HeaderBits
	if info.Kind == rpcdelta.Delta {
		t.deltas++
		t.ages += info.BaselineAge
	} else {
		t.intra++
	}
}

func (t *tally) add(o *tally) {
	t.sent += o.sent
	t.messages += o.messages
	t.delivered += o.delivered
	t.mismatches += o.mismatches
	t.undecodable += o.undecodable
	t.lost += o.lost
	t.late += o.late
	t.intra += o.intra
	t.deltas += o.deltas
	t.ages += o.ages
	t.fullBits += o.fullBits
	t.payloadBits += o.payloadBits
	t.headerBits += o.headerBits
	t.frameBits += o.frameBits
	t.acks += o.acks
	t.ackBytes += o.ackBytes
	t.frames += o.frames
	t.inTime += o.inTime
	t.urgent += o.urgent
	t.rleBits += o.rleBits
	t.delay += o.delay
	t.urgentDelay = max(t.urgentDelay, o.urgentDelay)
}

func (t *tally) counts(p *pair) Counts {
	cfg, around := &p.cfg, p.cfg.around()
	ack := around + messageType
	if cfg.DownlinkHz > 0 {
		ack = 0
	}
	both := 8 * (around*t.messages + t.ackBytes + ack*t.acks)
	full := t.fullBits + 8*endpoint.FullOverhead*t.sent
	preset, rle := "", 0
	if p.scheme.preset != nil {
		preset, rle = p.scheme.preset.Name, t.rleBits+both
	}
	return Counts{
		Preset:             preset,
		Suite:              cfg.Suite.String(),
		WireBothBits:       share(t.frameBits+both, t.sent),
		WireRatio:          share(t.frameBits+both, full),
		BatchedRatio:       share(t.fullBits+8*around*t.messages, full),
		BatchedRLERatio:    share(rle, full),
		DelayMsMean:        thousandths(1e3 * t.delay.Seconds() / float64(max(1, t.delivered))),
		UrgentDelayMsMax:   thousandths(1e3 * t.urgentDelay.Seconds()),
		UrgentPerSecond:    thousandths(float64(t.urgent) * p.trace.Schema.RateHz() / float64(max(1, t.sent))),
		DatagramsPerSecond: thousandths(float64(t.messages) * p.trace.Schema.RateHz() / float64(max(1, t.sent))),
		Name:               p.scheme.name,
		FramesSent:         t.frames,
		FramesDelivered:    t.delivered,
		DeliveredRatio:     share(t.inTime, t.frames),
		FullBits:           share(t.fullBits, t.sent),
		PayloadBits:        share(t.payloadBits, t.sent),
		HeaderBits:         share(t.headerBits, t.sent),
		DatagramBits:       share(8*endpoint.HeaderSize*t.messages, t.sent),
		AEADBits:           share(8*cfg.Suite.Overhead()*t.messages, t.sent),
		IPBits:             share(8*endpoint.IPSize*t.messages, t.sent),
		FullWireBits:       share(full, t.sent),
		WireBits:           share(t.frameBits+8*around*t.messages, t.sent),
		AckBits:            share(8*t.ackBytes, t.sent),
		AckWireBits:        share(8*(t.ackBytes+(messageType+around)*t.acks), t.sent),
		Keyframes:          t.intra,
		Mismatches:         t.mismatches,
		Undecodable:        t.undecodable,
		Lost:               share(t.lost, t.messages),
		Late:               share(t.late, t.frames),
		BaselineAge:        share(t.ages, t.deltas),
	}
}

func thousandths(v float64) float64 { return math.Round(v*1e3) / 1e3 }
