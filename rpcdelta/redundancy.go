package rpcdelta

import "math"

// redundancy decides how often payloads are sent and how many older payloads each repeats, from the
// loss that acks report.
type redundancy struct {
	setting  int     // EncoderConfig.Redundancy; RedundancyOff if a payload cannot contain several frames
	limit    int     // maximum, whatever the setting
	batch    int     // EncoderConfig.MaxBatchDelay
	deadline int     // EncoderConfig.Deadline
	target   float64 // maximum share of lost frames
	loss     lossMeter
	plan     plan
	lost     [MaxFrames + 1]float64 // probability that so many consecutive payloads are lost
	owed     float64                // fraction of an older payload that the previous payloads left out
}

// intervalStep is the difference of two intervals that are tried.
const intervalStep = 1. / 12

// plan is how payloads are sent.
type plan struct {
	interval float64 // frames between two payloads, at least 1
	older    int     // number of older payloads that a payload repeats
	share    float64 // share of the payloads that repeat so many; the others repeat one less
}

// combines reports whether a payload can contain several frames.
func (c *EncoderConfig) combines() bool { return !c.Reliable && c.Codec != RLE }

func newRedundancy(c *EncoderConfig) redundancy {
	r := redundancy{limit: MaxRedundancy, batch: c.MaxBatchDelay, deadline: c.Deadline, target: 1 - c.Delivery}
	r.configure(c)
	return r
}

func (r *redundancy) configure(c *EncoderConfig) {
	if r.setting = c.Redundancy; !c.combines() {
		r.setting = RedundancyOff
	}
	r.replan()
}

// replan computes the plan with the fewest payloads and copies that meets the target with the loss
// that was observed so far.
func (r *redundancy) replan() {
	p := plan{interval: float64(r.batch + 1), older: max(0, r.setting), share: 1}
	defer func() { r.plan = p }()
	if r.setting != RedundancyAuto {
		return
	}
	if r.deadline > 0 && r.loss.bursts() {
		// No fewer payloads deliver as much if losses come in bursts.
		p.interval, p.older = 1, min(r.deadline, r.limit)
		return
	}
	loss := r.loss.loss
	if r.deadline > 0 {
		loss = r.loss.assume()
	}
	for n := range r.lost {
		r.lost[n] = r.loss.allLost(loss, n)
	}
	for r.deadline > 0 && p.interval > 1 && r.missing(p.interval, r.limit) > r.target {
		p.interval = max(1, p.interval-intervalStep)
	}
	more := r.missing(p.interval, 0)
	for more > r.target && p.older < r.limit {
		p.older++
		fewer := more
		if more = r.missing(p.interval, p.older); more <= r.target {
			p.share = (fewer - r.target) / (fewer - more)
		}
	}
}

// planned is the number of frames that missing looks at. It is a multiple of all intervals.
const planned = 48

// missing returns the share of the frames of which no copy arrives by the deadline if payloads are
// sent at a mean interval and each repeats the given number of older ones.
func (r *redundancy) missing(interval float64, older int) float64 {
	if r.deadline == 0 {
		return r.lost[older+1]
	}
	sum := 0.0
	for frame := range planned {
		// Payload k leaves with frame ceil(k*interval).
		first := math.Ceil(float64(frame) / interval)
		last := math.Floor(float64(frame+r.deadline) / interval)
		sum += r.lost[1+min(older, int(last-first))]
	}
	return sum / planned
}

// copies returns the number of payloads that contain a frame, rounded.
func (r *redundancy) copies() int {
	n := float64(r.plan.older) + r.plan.share
	return 1 + min(int(n-0.5), r.limit)
}

// max returns the maximum number of older payloads that the next payload repeats.
func (r *redundancy) max() int { return min(r.plan.older, r.limit) }

// choose returns the number of older payloads that the next payload repeats.
func (r *redundancy) choose() int {
	if r.plan.share == 1 || r.plan.older > r.limit {
		return r.max()
	}
	if r.owed += r.plan.share; r.owed < 1 {
		return r.plan.older - 1
	}
	r.owed--
	return r.plan.older
}

// lossMeter estimates from acks the probability that a payload is lost, and the probability that it
// is lost if the one before was.
type lossMeter struct {
	loss  float64 // share of lost payloads
	again float64 // share of lost payloads among those after a lost one
	last  bool    // the last one was lost
	seen  int     // observed payloads, at most lossMemory
}

const (
	// lossMemory is the number of payloads for which a loss affects the estimates, and againMemory
	// the number of losses.
	lossMemory  = 256
	againMemory = 32
	// minMemory is that of the first payloads, which have more weight.
	minMemory = 16
)

func (m *lossMeter) observe(lost bool) {
	happened := 0.0
	if lost {
		happened = 1
	}
	if m.last {
		m.again += (happened - m.again) / againMemory
	}
	m.seen = min(m.seen+1, lossMemory)
	m.loss += (happened - m.loss) / float64(max(minMemory, m.seen))
	m.last = lost
}

// againNoise exceeds the usual error of lossMeter.again. A smaller difference from the loss does
// not mean that losses come together.
const againNoise = 0.1

// allLost returns the probability that a number of consecutive payloads is lost if the share of
// lost payloads is loss.
func (m *lossMeter) allLost(loss float64, payloads int) float64 {
	again := loss
	if m.again > loss+againNoise {
		again = m.again
	}
	return loss * math.Pow(again, float64(payloads-1))
}

// A stream with a deadline starts with the loss that mobile networks often have, until enough
// payloads have been observed: without it, all that is lost before the first ack of a loss would
// be late.
const (
	assumedLoss = 0.05
	assumeUntil = 48 // payloads
)

// assume returns the share of payloads that are lost, or an assumption until enough were observed.
func (m *lossMeter) assume() float64 {
	return max(m.loss, assumedLoss*float64(assumeUntil-m.seen)/assumeUntil)
}

func (m *lossMeter) estimates() (share, burst float64) {
	return m.loss, 1 / (1 - min(max(m.again, m.loss), 1-1./lossMemory))
}

// bursts reports whether a payload is much more likely to be lost if the one before was.
func (m *lossMeter) bursts() bool { return m.again > 1./3 && m.again > 2*m.loss }
