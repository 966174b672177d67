package rpcdelta

import "math"

// ackRate estimates the rate at which the decoder should send acks.
type ackRate struct {
	last uint64 // newest payload at the last ack
	// Means over recent delta payloads: bits of one frame, frames, age of the baseline.
	bits, frames, age float64
	fresh             float64 // mean number of new frames per payload
	lossy             int     // payloads until the link counts as lossless
}

const (
	ackRateStep = 1.0 / 32
	// ackBits is the typical size of an ack in bits. ageCost is the relative growth of the oldest
	// frame of a payload when the age of its baseline doubles.
	ackBits = 16
	ageCost = 0.17
	// maxAckInterval is the maximum interval of separate acks, in frames. maxFreeInterval is the
	// maximum interval of piggybacked acks, which also report losses to the encoder earlier.
	maxAckInterval  = 14
	maxFreeInterval = 8
	// The ack interval is at most 1/ringShare of the ring, so that baselines stay in the ring if
	// two consecutive acks are lost.
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

// lossyPayloads is the number of payloads after a loss during which acks are sent promptly.
const lossyPayloads = 64

// contiguous adds a payload. yes reports whether its first frame follows the newest delivered frame
// directly. Otherwise frames between them were lost, or the encoder repeats frames because of
// losses.
func (r *ackRate) contiguous(yes bool) {
	if r.lossy = max(0, r.lossy-1); !yes {
		r.lossy = lossyPayloads
	}
}

// promptPays reports whether an ack after each payload saves more bits than it costs: it makes
// redundant copies needless. overhead is the cost of an ack in bits, in addition to its own size.
func (r *ackRate) promptPays(overhead int) bool {
	return r.lossy > 0 && float64(ackBits+overhead) < r.bits*r.fresh
}

// pays reports whether an ack of payload newest saves more bits than it costs. overhead is its cost
// in bits in addition to its own size. Acks at an interval of k frames cost (ackBits+overhead)/k
// bits per frame, and make the mean baseline k/2 frames older.
func (r *ackRate) pays(newest uint64, overhead, ring int) bool {
	growth := r.bits * ageCost / math.Ln2 / max(1, r.age) / max(1, r.frames) // bits per frame, per frame of baseline age
	interval := math.Sqrt(2 * float64(ackBits+overhead) / max(growth, 0.01))
	limit := float64(maxAckInterval)
	if overhead == 0 {
		limit = maxFreeInterval
	}
	return float64(newest-r.last) >= min(interval, limit, float64(ring)/ringShare)
}
