package rpcdelta

import (
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
)

// Codec identifies a coding of the difference of two frames. Its method String returns its name.
type Codec = rpcdelta.Codec

// The codecs. Both ends of a stream must use the same.
const (
	// RLE packs differences of numbers as Unreal Engine packs vectors, and run-length codes the XOR
	// of the other fields.
	RLE = rpcdelta.RLE
	// Adaptive predicts each component and codes the residual with an arithmetic coder whose models
	// learn from acknowledged frames. Payloads can contain redundant frames. It is the default.
	Adaptive = rpcdelta.Adaptive
)

// Prior is the state from which streams of the adaptive codec start. Both ends need the same one.
// It is immutable and safe for concurrent use.
type Prior = rpcdelta.Prior

// ParsePrior parses a prior, as the command uplink train writes it. data may be untrusted and is
// not retained. A prior takes about 70 KiB of memory plus four times the size of data; parsing
// never takes more than 60 MiB.
func ParsePrior(data []byte) (*Prior, error) { return rpcdelta.ParsePrior(data) }

// Reasons for which a decoder drops a payload. All of them occur on a lossy network or under
// attack: count them.
var (
	// ErrLate reports that a newer payload was processed before.
	ErrLate = rpcdelta.ErrLate
	// ErrDuplicate reports that the payload was processed before.
	ErrDuplicate = rpcdelta.ErrDuplicate
	// ErrBaselineMissing reports that the baseline of the payload is not in the ring. The next ack
	// requests a reset.
	ErrBaselineMissing = rpcdelta.ErrBaselineMissing
	// ErrDesync reports that the divergence check failed: the two ends hold different baselines or
	// models. The next ack requests a reset.
	ErrDesync = rpcdelta.ErrDesync
	// ErrMalformed reports a payload that no encoder of this schema writes.
	ErrMalformed = rpcdelta.ErrMalformed
)

// ErrTooLarge reports a frame that does not fit into one payload. Nothing was encoded, and the
// stream continues.
var ErrTooLarge = rpcdelta.ErrTooLarge

// ErrAck reports an ack that cannot be genuine: it refers to frames that were never sent, or to an
// epoch that the encoder did not open.
var ErrAck = rpcdelta.ErrAck

// FrameKind reports whether a frame was coded against a baseline, and if not, whether it resets the
// decoder. Its method String returns its name.
type FrameKind = rpcdelta.FrameKind

// The kinds of frames.
const (
	// Delta frames are coded against a baseline.
	Delta = rpcdelta.Delta
	// Keyframe frames have no baseline; the decoder keeps its state.
	Keyframe = rpcdelta.Keyframe
	// Reset frames have no baseline and reset the state of the decoder.
	Reset = rpcdelta.Reset
)

// Info describes a frame on the wire:
//
//	Seq         uint64    // sequence of the frame, from 0
//	Kind        FrameKind
//	BaselineAge int       // distance in frames from the frame to its baseline; 0 without one
//	FullBits    int       // size of the frame as an engine sends it, nothing as a difference
//	HeaderBits  int       // size of the payload's header, at its newest frame
//	PayloadBits int       // size of the coded part of the payload, at its newest frame
//	Redundant   int       // number of frames before this one in its payload, including held frames
//	Held        int       // those of them that no earlier payload contained; at the encoder only
type Info = rpcdelta.Info

// Stats counts frames. Its method Count adds a frame described by an [Info] and the frames that
// were held back for its payload, Add adds the counts of other Stats, and Frames returns the number
// of frames of all kinds. Not safe for concurrent use.
//
//	Delta, Keyframe, Reset            uint64     // frames of each kind
//	FullBits, HeaderBits, PayloadBits uint64     // sums of these fields of Info
//	BaselineAge                       [14]uint64 // delta frames by age of their baseline in frames: at
//	                                             // most 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, more
//	AgeSum                            uint64     // sum of these ages
//	Redundant                         uint64     // redundant frames in payloads
type Stats = rpcdelta.Stats

// DeliveryStats counts the payloads and frames of an encoder by delivery status, as far as acks
// report it. Payloads in flight at the end of an epoch are not counted.
//
//	Processed, Lost   uint64 // payloads; lost ones never arrived or arrived too late
//	Delivered, Missed uint64 // frames; of missed ones no copy arrived in time
type DeliveryStats = rpcdelta.DeliveryStats

// Profile reports the bits that payloads take, by field and component, summed over many payloads;
// [Encoder.Measure] and [Decoder.Measure] fill one. Its fields Payloads, Frames, FullBits,
// HeaderBits and PayloadBits are sums, and Fields has FullBits and Bits of each field of the schema
// by Name. Its method Add adds another profile. Not safe for concurrent use.
type Profile = rpcdelta.Profile

// NewProfile returns an empty profile of frames of schema s.
func NewProfile(s *schema.Schema) *Profile { return rpcdelta.NewProfile(s) }

// Values of EncoderConfig.Redundancy other than 1 to 15.
const (
	// RedundancyAuto adapts to the loss that acks report: no redundancy without loss, otherwise as
	// much as EncoderConfig.Delivery requires. Until acks have reported on 32 payloads, a loss of
	// up to 5 % is assumed.
	RedundancyAuto = rpcdelta.RedundancyAuto
	// RedundancyOff sends each frame once.
	RedundancyOff = rpcdelta.RedundancyOff
)

// EncoderConfig configures an Encoder. Zero fields mean the defaults.
type EncoderConfig struct {
	// Codec must be that of the decoder; default [Adaptive].
	Codec Codec
	// RPC is the number in headers that distinguishes the RPCs of a connection, 0 to 255. Headers
	// are shortest for 0 and longest from 11 on; acks are longer from 8 on.
	RPC int
	// Ring is the number of sent frames to keep, and that which the decoder keeps, 2 to 256;
	// default 64.
	Ring int
	// MaxPayload is the maximum size of a payload in bytes; default 1,197.
	MaxPayload int
	// Redundancy is the number of older payloads whose frames each payload of the adaptive codec
	// repeats: RedundancyAuto (0, the default), RedundancyOff, or 1 to 15. Unless frames are held
	// back, each payload contains one new frame.
	Redundancy int
	// Delivery is the share of frames that RedundancyAuto aims to deliver, 0.5 to 0.99999; default
	// 0.9995.
	Delivery float64
	// MaxBatchDelay is the maximum number of later frames that a held frame waits for, 0 to 7; see
	// [Encoder.Due]. Only the adaptive codec can batch.
	MaxBatchDelay int
	// Deadline is the number of frames after which a frame is useless to the decoder. Its last
	// redundant copy is sent by then. 0 means no deadline.
	Deadline int
	// Repair repeats payloads whose acks are overdue, where the deadline permits, instead of
	// repeating all frames; see [Encoder.AppendRepair]. The decoder must have a
	// RepairTime.
	Repair bool
	// RedundancyBytes is the maximum size in bytes of a payload with redundant frames, and of the
	// payloads that are repeated in a tick; default 256. New frames are sent whatever their size.
	RedundancyBytes int
	// Prior is the initial state of the adaptive codec, which must be that of the decoder; nil
	// means the built-in one.
	Prior *Prior
	// Reliable means that the channel delivers every payload in order. The baseline is always the
	// previous frame, and there are no acks.
	Reliable bool
}

// Encoder encodes frames to payloads, each as the difference from a frame that the decoder is known
// to hold. It neither reads a clock nor does I/O. Not safe for concurrent use.
type Encoder struct{ coder *rpcdelta.Encoder }

// NewEncoder returns an encoder for frames of schema s. The first frame has sequence 0. An error
// names the invalid setting.
func NewEncoder(s *schema.Schema, cfg EncoderConfig) (*Encoder, error) {
	e, err := rpcdelta.NewEncoder(s, rpcdelta.EncoderConfig{
		Codec: cfg.Codec, RPC: cfg.RPC, Ring: cfg.Ring, PeerRing: cfg.Ring, MaxPayload: cfg.MaxPayload,
		Redundancy: cfg.Redundancy, Delivery: cfg.Delivery, MaxBatchDelay: cfg.MaxBatchDelay, Deadline: cfg.Deadline,
		Repair: cfg.Repair, RedundancyBytes: cfg.RedundancyBytes, Prior: cfg.Prior, Reliable: cfg.Reliable,
	})
	if err != nil {
		return nil, err
	}
	return &Encoder{e}, nil
}

// AppendFrame appends the payload of the next frame to dst and returns the extended slice. The
// payload consists of a header and the coded part, which repeats older frames as configured by
// Redundancy. If a component of f is out of its range, the error wraps a [*schema.RangeError]; if
// the payload exceeds MaxPayload, it wraps [ErrTooLarge]. On an error, dst is returned unchanged,
// the sequence is not used and the encoder remains usable. If frames are held back, AppendFrame is
// equivalent to [Encoder.Hold] followed by [Encoder.AppendHeld]. It does not allocate once warm.
func (e *Encoder) AppendFrame(dst []byte, f *schema.Frame) ([]byte, Info, error) {
	return e.coder.AppendFrame(dst, f)
}

// Hold assigns the next sequence to f without encoding a payload. The next call of AppendHeld or
// AppendFrame encodes it, with the frames after it, in one payload of the adaptive codec. Errors
// are those of [Encoder.AppendFrame]. In addition, the frame must fit into a payload of its own
// without a baseline, because a held frame that does not fit would block all later frames.
// Otherwise the error wraps [ErrTooLarge]. Such a frame may still fit as a delta: encode the held
// frames, then call AppendFrame. It is an error to hold more than 8 frames. Hold does not allocate
// once warm.
//
// With held frames, the caller must drop late payloads earlier; see [Decoder].
func (e *Encoder) Hold(f *schema.Frame) error { return e.coder.Hold(f) }

// Held returns the number of frames that are held back.
func (e *Encoder) Held() int { return e.coder.Held() }

// Due reports whether the held frames are to be sent now, in the tick of the newest one. This is
// the case if one of them has waited for MaxBatchDelay frames, or if their copies could otherwise
// not be sent by the deadline. It is also the case if one is urgent: a discrete field changed, or
// the model did not expect its values. While redundant copies of a recent urgent frame are still to
// be sent, held frames are due too.
func (e *Encoder) Due() bool { return e.coder.Due() }

// AppendHeld appends the payload of the oldest held frames, as many as fit. Call it until Held
// returns 0. If no frame is held, it returns dst unchanged. It does not allocate once warm.
func (e *Encoder) AppendHeld(dst []byte) ([]byte, Info) { return e.coder.AppendHeld(dst) }

// AppendRepair appends a payload that is to be repeated because its ack is overdue, or returns dst
// unchanged if there is none. After [Encoder.AppendHeld], call it until it returns dst unchanged;
// the payloads may share one datagram. In total they have at most RedundancyBytes. The decoder must
// have a RepairTime. It does not allocate once warm.
func (e *Encoder) AppendRepair(dst []byte) []byte { return e.coder.AppendRepair(dst) }

// Ack processes an ack of the decoder. Old and repeated acks have no effect. Neither do acks for
// which it returns [ErrAck].
func (e *Encoder) Ack(a Ack) error { return e.coder.Ack(a) }

// SetRedundancy changes EncoderConfig.Redundancy from the next frame on. If n is invalid, it
// returns the error of [NewEncoder] and leaves the setting unchanged.
func (e *Encoder) SetRedundancy(n int) error { return e.coder.SetRedundancy(n) }

// DeliveryStats returns the statistics of the payloads and frames sent so far. They are zero on a
// reliable channel, which has no acks.
func (e *Encoder) DeliveryStats() DeliveryStats { return e.coder.DeliveryStats() }

// Measure adds each payload that is encoded from now on to p; nil stops it. It codes each payload a
// second time, and does not allocate once warm. It panics if p is of another schema.
func (e *Encoder) Measure(p *Profile) { e.coder.Measure(p) }

// Ack reports which payloads a decoder processed: the newest one, and a window of earlier ones. Its
// field RPC is the number of the RPC, a uint8; the others are for [Encoder.Ack].
type Ack = rpcdelta.Ack

// ParseAck parses the ack at the start of b and returns the bytes that follow it.
func ParseAck(b []byte) (a Ack, rest []byte, err error) { return rpcdelta.ParseAck(b) }

// PeekRPC returns the number of the RPC that a payload belongs to, without decoding it.
func PeekRPC(payload []byte) (int, error) { return rpcdelta.PeekRPC(payload) }

// DecoderConfig configures a Decoder. Zero fields mean the defaults.
type DecoderConfig struct {
	// Codec must be that of the encoder; default [Adaptive].
	Codec Codec
	// RPC is the RPC number in headers and acks, as in [EncoderConfig].
	RPC int
	// Ring is that of the encoder.
	Ring int
	// DeliverLate delivers frames of payloads that arrive out of order, marked as late, instead of
	// dropping them. They never become baselines.
	DeliverLate bool
	// RepairTime is the encoder's Deadline less its MaxBatchDelay if it has Repair, else 0. If an
	// ack takes less time, the encoder can repeat a lost payload, see [Decoder.AckPays]. If
	// RepairTime is not 0, frames of payloads up to about 20 frames late are delivered too.
	RepairTime int
	// Prior is the encoder's prior; nil means the built-in one.
	Prior *Prior
	// Reliable means that the channel delivers every payload in order.
	Reliable bool
	// Scratch, if not nil, is shared with other decoders, see [Scratch].
	Scratch *Scratch
}

// Scratch is the memory that a decoder needs only while it decodes, about 2 KiB. Decoders may share
// one Scratch if they are not used concurrently, for example the decoders of all players of a
// server, also if their frames have different schemas. The result of Decode is then valid until the
// next call on any of them, or of NewDecoder.
type Scratch = rpcdelta.Scratch

// NewScratch returns scratch memory for frames of schema s. It grows if a decoder has larger
// frames.
func NewScratch(s *schema.Schema) *Scratch { return rpcdelta.NewScratch(s) }

// Delivery is a decoded frame: its [Info], and
//
//	Frame  *schema.Frame // valid until the next call of Decode, see Scratch
//	Missed uint64        // undelivered frames between this one and the one delivered before it
//	Late   bool          // newer frames were delivered before
type Delivery = rpcdelta.Delivery

// Decoder decodes payloads to frames. Payloads may be lost, duplicated or reordered; the
// decoder reports those that it drops. Not safe for concurrent use.
//
// The caller must drop a payload if another payload arrived earlier whose newest frame is 64 or
// more frames newer. The reason is that short headers contain only 7 bits of the sequence. Without
// held frames, the limit is 64 newer payloads. If each payload contains up to k new frames
// ([Encoder.Hold]), it is 64/k newer payloads. A decoder that replaces another must not receive
// payloads that were sent to its predecessor. Sessions of package client and ds ensure both.
type Decoder struct{ coder *rpcdelta.Decoder }

// NewDecoder returns a decoder for frames of schema s. An error names the invalid setting.
func NewDecoder(s *schema.Schema, cfg DecoderConfig) (*Decoder, error) {
	d, err := rpcdelta.NewDecoder(s, rpcdelta.DecoderConfig{
		Codec: cfg.Codec, RPC: cfg.RPC, Ring: cfg.Ring, PeerRing: cfg.Ring, DeliverLate: cfg.DeliverLate,
		RepairTime: cfg.RepairTime, Prior: cfg.Prior, Reliable: cfg.Reliable, Scratch: cfg.Scratch,
	})
	if err != nil {
		return nil, err
	}
	return &Decoder{d}, nil
}

// Decode decodes one payload and returns the frames that it newly delivers, oldest first. The slice
// and its frames are valid until the next call, see [Scratch]. An error wraps one of the reasons
// for which payloads are dropped, such as [ErrLate]; the decoder remains usable. The payload is
// neither modified nor retained. Only errors allocate.
func (d *Decoder) Decode(payload []byte) ([]Delivery, error) { return d.coder.Decode(payload) }

// AckDue reports whether the decoder accepted a newer payload, or had a reason to request a reset,
// since the last AppendAck. It is always false on a reliable channel.
func (d *Decoder) AckDue() bool { return d.coder.AckDue() }

// AckPays reports whether an ack now saves more bits than it costs. overhead is its cost in bits in
// addition to its own size. Rarer acks cost less, but make baselines older and deltas larger; the
// best rate is estimated from the payloads. A request for a reset always pays. While payloads are
// lost, every ack pays if the encoder can repeat payloads by their deadline. delay is the number of
// frames from a payload to its ack.
func (d *Decoder) AckPays(overhead, delay int) bool { return d.coder.AckPays(overhead, delay) }

// AppendAck appends an ack of the payloads processed so far, typically 2 or 3 bytes. Acks may be
// lost, repeated and reordered.
func (d *Decoder) AppendAck(dst []byte) []byte { return d.coder.AppendAck(dst) }

// AskReset makes the next acks request a reset, as if a baseline were missing. Payloads after the
// reset can be decoded without earlier payloads. It has no effect before the first payload and on a
// reliable channel.
func (d *Decoder) AskReset() { d.coder.AskReset() }

// Measure adds each payload that is decoded from now on to p; nil stops it. Dropped payloads are
// not added. It codes each payload a second time, and does not allocate once warm. If the payload
// is larger than this second coding, because another encoder did not choose the smallest one, the
// difference counts as RoundingBits. Measure panics if p is of another schema.
func (d *Decoder) Measure(p *Profile) { d.coder.Measure(p) }
