package rpcdelta

import "math/bits"

// Values of EncoderConfig.Redundancy other than 1 to MaxRedundancy.
const (
	// RedundancyAuto adapts to the loss that acks report: no redundancy without loss, otherwise as
	// much as EncoderConfig.Delivery requires.
	RedundancyAuto = 0
	// RedundancyOff sends each frame once.
	RedundancyOff = -1
)

// DefaultDelivery is the Delivery of a config that sets none: one frame in 2,000 may be lost.
const DefaultDelivery = 0.9995

// Bounds of EncoderConfig.Delivery.
const (
	MinDelivery = 0.5
	MaxDelivery = 0.99999
)

// DefaultRedundancyBytes is the RedundancyBytes of a config that sets none.
const DefaultRedundancyBytes = 256

// LimitRedundancy limits redundancy to the frames of n older payloads from now on, independent of
// EncoderConfig.Redundancy and [Encoder.SetRedundancy]. The initial limit is MaxRedundancy.
func (e *Encoder) LimitRedundancy(n int) { e.limit = min(max(n, 0), MaxRedundancy) }

// SetRedundancy changes EncoderConfig.Redundancy from the next payload on. The error is that of
// [EncoderConfig.Check], and leaves the setting unchanged.
func (e *Encoder) SetRedundancy(n int) error {
	cfg := e.cfg
	cfg.Redundancy = n
	if err := cfg.Check(); err != nil {
		return err
	}
	e.cfg = cfg
	return nil
}

// Redundancy returns the maximum number of older payloads whose frames the next payload repeats.
func (e *Encoder) Redundancy() int {
	n := e.cfg.Redundancy
	switch {
	case n == RedundancyOff || !e.cfg.combines():
		return 0
	case n == RedundancyAuto:
		n, _ = e.losses.enough()
	}
	return min(n, e.limit)
}

// Loss returns estimates, based on recent acks, of the share of payloads that are lost and of the
// mean length of a loss burst, in payloads. They are 0 and 1 without loss.
func (e *Encoder) Loss() (share, burst float64) {
	m := &e.losses
	again := min(max(m.again, m.loss), lossOne-lossOne>>lossRate)
	return float64(m.loss) / lossOne, lossOne / float64(lossOne-again)
}

// chooseRedundancy returns the number of older payloads whose frames the next payload repeats.
func (e *Encoder) chooseRedundancy() int {
	if e.cfg.Redundancy == RedundancyAuto && e.cfg.combines() {
		return min(e.losses.choose(), e.limit)
	}
	return e.Redundancy()
}

// combines reports whether a payload can contain several frames.
func (c *EncoderConfig) combines() bool { return !c.Reliable && c.Codec != RLE }

// lossMeter estimates from acks the probability that a payload is lost, and the probability that it
// is lost if the one before was. Probabilities are in units of 2^-24.
type lossMeter struct {
	loss  uint32 // share of lost payloads
	again uint32 // share of lost payloads among those after a lost one
	last  bool   // the last one was lost
	owed  uint32 // fraction of a frame that the previous payloads left out
	seen  uint   // observed payloads, up to 2^lossRate-1; the first ones have more weight
	aim   uint32 // maximum share of lost frames
}

const (
	lossBits = 24
	lossOne  = 1 << lossBits
	lossRate = 8 // a loss affects the estimate for about 2^8 payloads
)

// newLossMeter returns a meter that has observed no loss, for the given share of frames to deliver.
func newLossMeter(delivery float64) lossMeter {
	return lossMeter{aim: uint32((1 - delivery) * lossOne)}
}

// observe updates the estimates with the delivery status of one payload.
func (m *lossMeter) observe(lost bool) {
	if m.last {
		m.again = follow(m.again, lost, lossRate-3)
	}
	m.seen = min(m.seen+1, 1<<lossRate-1)
	m.loss = follow(m.loss, lost, max(lossRate/2, uint(bits.Len(m.seen))))
	m.last = lost
}

// follow returns the estimate moved toward the observation by 2^-rate of the difference.
func follow(estimate uint32, happened bool, rate uint) uint32 {
	if happened {
		return estimate + (lossOne-estimate)>>rate
	}
	return estimate - estimate>>rate
}

// enough returns the number of older frames that the aim requires: a frame is lost if all payloads
// that contain it are. share is how often n of them are required, and not n-1, in units of 2^-24.
func (m *lossMeter) enough() (n int, share uint32) {
	lost, fewer := m.loss, uint32(0)
	for lost > m.aim && n < MaxRedundancy {
		fewer = lost
		lost = uint32(uint64(lost) * uint64(max(m.again, m.loss)) >> lossBits)
		n++
	}
	if n == 0 || lost > m.aim {
		return n, lossOne
	}
	return n, uint32(uint64(fewer-m.aim) << lossBits / uint64(fewer-lost))
}

// choose returns the number of older frames in the next payload. If n-1 are too few for the aim and
// n more than enough, it returns each of them for a share of the payloads.
func (m *lossMeter) choose() int {
	n, share := m.enough()
	if share == lossOne {
		return n
	}
	m.owed += share
	if m.owed < lossOne {
		return n - 1
	}
	m.owed -= lossOne
	return n
}
