package rpcdelta

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/adaptive"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/wire"
)

// Limits of configs.
const (
	// MaxRPC is the highest number of an RPC.
	MaxRPC = wire.MaxRPC
	// MaxRing is the maximum capacity of a ring of frames.
	MaxRing = wire.MaxRing
	// MaxFrames is the maximum number of frames in a payload.
	MaxFrames = adaptive.MaxFrames
	// MaxRedundancy is the maximum number of older payloads whose frames a payload repeats.
	MaxRedundancy = MaxFrames - 1
	// MaxHeld is the maximum number of frames that an encoder holds back.
	MaxHeld = 8
	// MaxRepairAge is the maximum age of a payload that is repeated, in frames.
	MaxRepairAge = 31
	// MinDelivery and MaxDelivery are the bounds of EncoderConfig.Delivery.
	MinDelivery = 0.5
	MaxDelivery = 0.99999
)

// Defaults of configs.
const (
	// DefaultRing is the default capacity of a ring of frames.
	DefaultRing = 64
	// DefaultDelivery is the default of EncoderConfig.Delivery: one frame in 2,000 may be lost.
	DefaultDelivery = 0.9995
	// DefaultRedundancyBytes is the default of EncoderConfig.RedundancyBytes.
	DefaultRedundancyBytes = 256

	defaultMaxPayload = 1197  // a datagram of 1,200 bytes less its header
	defaultUrgentLoss = 0.015 // two payloads in consecutive ticks at 12 % loss
)

// Values of EncoderConfig.Redundancy other than 1 to MaxRedundancy.
const (
	// RedundancyAuto adapts to the loss that acks report: no redundancy without loss, otherwise as
	// much as EncoderConfig.Delivery requires. Until acks have reported on 32 payloads, a loss of
	// up to 5 % is assumed.
	RedundancyAuto = 0
	// RedundancyOff sends each frame once.
	RedundancyOff = -1
)

// EncoderConfig configures an Encoder. Zero fields mean the defaults.
type EncoderConfig struct {
	// Codec must be that of the decoder; default [DefaultCodec].
	Codec Codec
	// RPC is the number in headers that distinguishes the RPCs of a connection, 0 to MaxRPC.
	// Headers are shortest for 0 and longest from 11 on; acks are longer from 8 on.
	RPC int
	// Ring is the number of sent frames to keep, 2 to MaxRing; default DefaultRing.
	Ring int
	// PeerRing is the number of frames that the decoder keeps; default DefaultRing. The encoder
	// does not use a baseline that the smaller of both rings may have evicted.
	PeerRing int
	// MaxPayload is the maximum size of a payload in bytes; default 1,197.
	MaxPayload int
	// Redundancy is the number of older payloads whose frames each payload of the adaptive codec
	// repeats: RedundancyAuto (0, the default), RedundancyOff, or 1 to MaxRedundancy. Unless frames
	// are held back, each payload contains one new frame.
	Redundancy int
	// Delivery is the share of frames that RedundancyAuto aims to deliver, MinDelivery to
	// MaxDelivery; default DefaultDelivery.
	Delivery float64
	// MaxBatchDelay is the maximum number of later frames that a held frame waits for, 0 to
	// MaxHeld-1; see [Encoder.Due]. Only the adaptive codec can batch.
	MaxBatchDelay int
	// Deadline is the number of frames after which a frame is useless to the decoder. Its last
	// redundant copy is sent by then. 0 means no deadline.
	Deadline int
	// UrgentLoss is the permitted probability that all copies of an urgent frame in consecutive
	// ticks are lost; default 1.5 %. Further copies are sent with later frames.
	UrgentLoss float64
	// Repair repeats payloads whose acks are overdue, where the deadline permits, instead of
	// repeating all frames; see [Encoder.AppendRepair]. The decoder must have a
	// RepairTime.
	Repair bool
	// RedundancyBytes is the maximum size in bytes of a payload with redundant frames, and of the
	// payloads that are repeated in a tick; default DefaultRedundancyBytes. New frames are sent
	// whatever their size.
	RedundancyBytes int
	// Prior is the initial state of the adaptive codec, which must be that of the decoder; nil
	// means the built-in one.
	Prior *prior.Prior
	// Reliable means that the channel delivers every payload in order. The baseline is always the
	// previous frame, and there are no acks.
	Reliable bool
}

// Check returns the error that [NewEncoder] would return for the settings of c.
func (c EncoderConfig) Check() error {
	_, err := c.withDefaults()
	return err
}

func (c EncoderConfig) withDefaults() (EncoderConfig, error) {
	c.MaxPayload = cmp.Or(c.MaxPayload, defaultMaxPayload)
	c.RedundancyBytes = cmp.Or(c.RedundancyBytes, DefaultRedundancyBytes)
	c.Delivery = cmp.Or(c.Delivery, DefaultDelivery)
	c.UrgentLoss = cmp.Or(c.UrgentLoss, defaultUrgentLoss)
	switch {
	case c.MaxPayload < wire.MaxHeader+1:
		return c, fmt.Errorf("rpcdelta: MaxPayload of %d bytes, want at least %d", c.MaxPayload, wire.MaxHeader+1)
	case c.Redundancy < RedundancyOff || c.Redundancy > MaxRedundancy:
		return c, fmt.Errorf("rpcdelta: Redundancy of %d frames, want at most %d, RedundancyAuto or RedundancyOff", c.Redundancy, MaxRedundancy)
	case !(c.Delivery >= MinDelivery && c.Delivery <= MaxDelivery):
		return c, fmt.Errorf("rpcdelta: Delivery of %v, want %v to %v", c.Delivery, MinDelivery, MaxDelivery)
	case c.MaxBatchDelay < 0 || c.MaxBatchDelay >= MaxHeld:
		return c, fmt.Errorf("rpcdelta: MaxBatchDelay of %d frames, want 0 to %d", c.MaxBatchDelay, MaxHeld-1)
	case c.Deadline < 0 || c.Deadline > 0 && c.Deadline < c.MaxBatchDelay:
		return c, fmt.Errorf("rpcdelta: Deadline of %d frames, want at least MaxBatchDelay, %d, or 0", c.Deadline, c.MaxBatchDelay)
	case !(c.UrgentLoss > 0 && c.UrgentLoss <= 1):
		return c, fmt.Errorf("rpcdelta: UrgentLoss of %v, want more than 0 and at most 1", c.UrgentLoss)
	case c.RedundancyBytes < 0:
		return c, fmt.Errorf("rpcdelta: RedundancyBytes of %d bytes, want at least 0", c.RedundancyBytes)
	}
	return c, checkShared(&c.Codec, c.RPC, &c.Ring, &c.PeerRing)
}

// DecoderConfig configures a Decoder. Zero fields mean the defaults.
type DecoderConfig struct {
	// Codec must be that of the encoder; default [DefaultCodec].
	Codec Codec
	// RPC is the RPC number in headers and acks, as in [EncoderConfig].
	RPC int
	// Ring is the number of frames to keep, 2 to MaxRing; default DefaultRing. The PeerRing of the
	// encoder must be equal.
	Ring int
	// PeerRing is the Ring of the encoder; default DefaultRing.
	PeerRing int
	// DeliverLate delivers frames of payloads that arrive out of order, marked as late, instead of
	// dropping them. They never become baselines.
	DeliverLate bool
	// RepairTime is the encoder's Deadline less its MaxBatchDelay if it has Repair, else 0. If an
	// ack takes less time, the encoder can repeat a lost payload, see [Decoder.AckPays]. If
	// RepairTime is not 0, frames of payloads up to about 20 frames late are delivered too.
	RepairTime int
	// Prior is the encoder's prior; nil means the built-in one.
	Prior *prior.Prior
	// Reliable means that the channel delivers every payload in order.
	Reliable bool
	// Scratch, if not nil, is shared with other decoders, see [Scratch].
	Scratch *Scratch
}

// checkpoints returns the number of earlier codec states to keep for decoding late payloads.
func (c *DecoderConfig) checkpoints() int {
	switch {
	case c.DeliverLate:
		return maxCheckpoints
	case c.RepairTime > 0:
		return repairCheckpoints
	}
	return 0
}

// checkShared checks the settings that both configs have and sets their defaults.
func checkShared(codec *Codec, rpc int, ring, peerRing *int) error {
	*codec = cmp.Or(*codec, DefaultCodec)
	var errs []error
	if *codec > Adaptive {
		errs = append(errs, fmt.Errorf("rpcdelta: unknown codec %v", *codec))
	}
	if rpc < 0 || rpc > MaxRPC {
		errs = append(errs, fmt.Errorf("rpcdelta: RPC number %d, want 0 to %d", rpc, MaxRPC))
	}
	for i, n := range []*int{ring, peerRing} {
		if *n = cmp.Or(*n, DefaultRing); *n < 2 || *n > MaxRing {
			name := [2]string{"Ring", "PeerRing"}[i]
			errs = append(errs, fmt.Errorf("rpcdelta: %s of %d frames, want 2 to %d", name, *n, MaxRing))
		}
	}
	return errors.Join(errs...)
}

// combines reports whether a payload can contain several frames.
func (c *EncoderConfig) combines() bool { return !c.Reliable && c.Codec != RLE }
