package rpcdelta

import "math/bits"

// redundancy decides how many older payloads the next payload repeats.
type redundancy struct {
	setting int // EncoderConfig.Redundancy; RedundancyOff if a payload cannot contain several frames
	limit   int // maximum, whatever the setting
	loss    lossMeter
}

// combines reports whether a payload can contain several frames.
func (c *EncoderConfig) combines() bool { return !c.Reliable && c.Codec != RLE }

func newRedundancy(c *EncoderConfig) redundancy {
	r := redundancy{limit: MaxRedundancy, loss: lossMeter{target: uint32((1 - c.Delivery) * lossOne)}}
	r.configure(c)
	return r
}

func (r *redundancy) configure(c *EncoderConfig) {
	if r.setting = c.Redundancy; !c.combines() {
		r.setting = RedundancyOff
	}
}

// max returns the maximum number of older payloads that the next payload repeats.
func (r *redundancy) max() int {
	n := max(0, r.setting)
	if r.setting == RedundancyAuto {
		n, _ = r.loss.required()
	}
	return min(n, r.limit)
}

// choose returns the number of older payloads that the next payload repeats.
func (r *redundancy) choose() int {
	if r.setting == RedundancyAuto {
		return min(r.loss.choose(), r.limit)
	}
	return r.max()
}

// lossMeter estimates from acks the probability that a payload is lost, and the probability that it
// is lost if the one before was. Probabilities are in units of 2^-24.
type lossMeter struct {
	loss   uint32 // share of lost payloads
	again  uint32 // share of lost payloads among those after a lost one
	last   bool   // the last one was lost
	owed   uint32 // fraction of a frame that the previous payloads left out
	seen   uint   // observed payloads, up to 2^lossRate-1; the first ones have more weight
	target uint32 // maximum share of lost frames
}

const (
	lossBits = 24
	lossOne  = 1 << lossBits
	lossRate = 8 // a loss affects the estimate for about 2^8 payloads
)

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

func (m *lossMeter) estimates() (share, burst float64) {
	again := min(max(m.again, m.loss), lossOne-lossOne>>lossRate)
	return float64(m.loss) / lossOne, lossOne / float64(lossOne-again)
}

// required returns the number of older payloads that the target requires: a frame is lost if all
// payloads that contain it are. share is how often n of them are required, and not n-1, in units of
// 2^-24.
func (m *lossMeter) required() (n int, share uint32) {
	lost, fewer := m.loss, uint32(0)
	for lost > m.target && n < MaxRedundancy {
		fewer = lost
		lost = uint32(uint64(lost) * uint64(max(m.again, m.loss)) >> lossBits)
		n++
	}
	if n == 0 || lost > m.target {
		return n, lossOne
	}
	return n, uint32(uint64(fewer-m.target) << lossBits / uint64(fewer-lost))
}

// choose returns the number of older payloads for the next payload. If n-1 are too few for the
// target and n more than required, it returns each of them for a share of the payloads.
func (m *lossMeter) choose() int {
	n, share := m.required()
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
