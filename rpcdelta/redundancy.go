package rpcdelta

import "math/bits"

// Redundancy, as EncoderConfig takes it, is how many older payloads' frames ride
// along in each payload, 1 to MaxRedundancy, or one of the constants.
const (
	// RedundancyAuto follows the loss that acks show: none on a link that loses
	// nothing, otherwise so many that EncoderConfig.Delivery is met.
	RedundancyAuto = 0
	// RedundancyOff sends each frame once.
	RedundancyOff = -1
)

// DefaultDelivery is the Delivery of a config that sets none: one frame in two
// thousand is lost.
const DefaultDelivery = 0.9995

// Bounds of EncoderConfig.Delivery.
const (
	MinDelivery = 0.5
	MaxDelivery = 0.99999
)

// DefaultRedundancyBytes is the RedundancyBytes of a config that sets none.
const DefaultRedundancyBytes = 256

// LimitRedundancy has the frames of at most n older payloads ride along from now
// on, whatever EncoderConfig.Redundancy says or [Encoder.SetRedundancy]. No limit, as at the start, is
// MaxRedundancy.
func (e *Encoder) LimitRedundancy(n int) { e.most = min(max(n, 0), MaxRedundancy) }

// SetRedundancy changes EncoderConfig.Redundancy from the next payload on. The error is that of
// [EncoderConfig.Check]; nothing is changed then.
func (e *Encoder) SetRedundancy(n int) error {
	cfg := e.cfg
	cfg.Redundancy = n
	if err := cfg.Check(); err != nil {
		return err
	}
	e.cfg = cfg
	return nil
}

// Redundancy is how many older payloads' frames ride along in a payload now, at
// most.
func (e *Encoder) Redundancy() int {
	n := e.cfg.Redundancy
	switch {
	case n == RedundancyOff || !e.cfg.combines():
		return 0
	case n == RedundancyAuto:
		n, _ = e.losses.enough()
	}
	return min(n, e.most)
}

// Loss is what acks show of how payloads are lost lately: the share that is, and how
// many are lost in a row on average where one is; 0 and 1 on a link that loses nothing.
func (e *Encoder) Loss() (share, burst float64) {
	m := &e.losses
	again := min(max(m.again, m.loss), lossOne-lossOne>>lossRate)
	return float64(m.loss) / lossOne, lossOne / float64(lossOne-again)
}

// chooseRedundancy is how many of them ride along in the next one.
func (e *Encoder) chooseRedundancy() int {
	if e.cfg.Redundancy == RedundancyAuto && e.cfg.combines() {
		return min(e.losses.choose(), e.most)
	}
	return e.Redundancy()
}

// combines says whether a payload can have several frames.
func (c *EncoderConfig) combines() bool { return !c.Reliable && c.Codec != RLE }

// lossMeter estimates from acks how payloads are lost: how often, and how often
// again after one was. Shares are of 2^24, so that they fade far below the aim.
type lossMeter struct {
	loss  uint32 // share of payloads that are lost
	again uint32 // of those after a lost one
	last  bool   // the last one was lost
	owed  uint32 // part of a frame that the last payloads left out, of lossOne
	seen  uint   // payloads, up to 2^lossRate: the first ones count for more
	aim   uint32 // share of frames that may be lost
}

const (
	lossBits = 24
	lossOne  = 1 << lossBits
	lossRate = 8 // a loss counts for 2^8 payloads
)

// newLossMeter makes one that has seen no loss, for a share of frames that are to
// arrive.
func newLossMeter(delivery float64) lossMeter {
	return lossMeter{aim: uint32((1 - delivery) * lossOne)}
}

// observe takes the fate of one payload.
func (m *lossMeter) observe(lost bool) {
	if m.last {
		m.again = follow(m.again, lost, lossRate-3)
	}
	m.seen = min(m.seen+1, 1<<lossRate-1)
	m.loss = follow(m.loss, lost, max(lossRate/2, uint(bits.Len(m.seen))))
	m.last = lost
}

// follow moves an estimate toward what happened by 1/2^rate of the way.
func follow(estimate uint32, happened bool, rate uint) uint32 {
	if happened {
		return estimate + (lossOne-estimate)>>rate
	}
	return estimate - estimate>>rate
}

// enough is how many older frames are enough for the aim: a frame is lost if its own
// payload is, and each that it rides along in. share is how often it has to be so
// many, and not one fewer, of lossOne.
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

// choose is how many older frames the next payload should have: where n are too few
// for the aim and n+1 more than enough, some payloads have n and some n+1.
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
