package rpcdelta

import "math"

// ackRate estimates how often acks pay.
type ackRate struct {
	last uint64 // newest payload at the last ack
	// Means over recent delta payloads: bits of one frame, frames, age of the baseline.
	bits, frames, age float64
	fresh             float64 // mean number of new frames in a payload
	lossy             int     // payloads until the link counts as one without loss
}

const (
	ackRateStep = 1.0 / 32
	// ackBits is the typical size of an ack, and ageCost the bits by which the oldest frame of a
	// payload grows if the age of its baseline doubles, as a share of its size.
	ackBits = 16
	ageCost = 0.17
	// maxAckInterval is the maximum interval of acks that pay, in frames, and maxFreeInterval that
	// of piggybacked ones, which also tell the encoder earlier what was lost.
	maxAckInterval  = 14
	maxFreeInterval = 8
	// ringShare limits the interval to this part of the ring, which baselines must not leave even
	// if two acks in a row are lost.
	ringShare = 4
)

// observe adds a payload with a number of new frames.
func (r *ackRate) observe(i *Info, fresh int) {
	if i.Kind != Delta {
		return
	}
	r.fresh += (float64(fresh) - r.fresh) * ackRateStep
	n := float64(i.Redundant + 1)
	r.bits += (float64(i.PayloadBits)/n - r.bits) * ackRateStep
	r.frames += (n - r.frames) * ackRateStep
	r.age += (float64(i.BaselineAge) - r.age) * ackRateStep
}

// lossyPayloads is the number of payloads for which a loss makes acks prompt.
const lossyPayloads = 64

// contiguous adds a payload that begins with the frame after the newest delivered one, or does not:
// frames between were lost, or the encoder repeats frames because others were.
func (r *ackRate) contiguous(yes bool) {
	if r.lossy = max(0, r.lossy-1); !yes {
		r.lossy = lossyPayloads
	}
}

// promptPays reports whether acks that cost overhead bits more than their own pay after each
// payload, because they save the redundant copies of its frames.
func (r *ackRate) promptPays(overhead int) bool {
	return r.lossy > 0 && float64(ackBits+overhead) < r.bits*r.fresh
}

// pays reports whether an ack of payload newest pays that costs overhead bits more than its own.
// Acks at an interval of k frames cost (ackBits+overhead)/k bits a frame, and make the mean
// baseline k/2 frames older.
func (r *ackRate) pays(newest uint64, overhead, ring int) bool {
	growth := r.bits * ageCost / math.Ln2 / max(1, r.age) / max(1, r.frames) // bits a frame and frame of age
	interval := math.Sqrt(2 * float64(ackBits+overhead) / max(growth, 0.01))
	limit := float64(maxAckInterval)
	if overhead == 0 {
		limit = maxFreeInterval
	}
	return float64(newest-r.last) >= min(interval, limit, float64(ring)/ringShare)
}
