package rpcdelta

import "math"

// redundancy determines from the reported loss the number of payloads that contain each frame. It
// assumes that payloads are lost independently or in bursts. The number of copies alternates
// between two values, so that the mean probability that all copies of a frame are lost meets the
// target.
type redundancy struct {
	setting  int     // EncoderConfig.Redundancy; RedundancyOff if a payload cannot contain several frames
	limit    int     // maximum number of copies
	deadline int     // EncoderConfig.Deadline
	target   float64 // maximum share of lost frames
	urgent   float64 // permitted probability that all copies of an urgent frame in consecutive ticks are lost
	loss     lossMeter
	lost     [MaxFrames + 2]float64 // probability that the given number of consecutive payloads is lost
	budget   float64                // target, reduced by the uncertainty of the loss estimate
	copies   int                    // number of copies of most frames; others have one more
	excess   float64                // sum over frames of loss probability minus target
}

func newRedundancy(c *EncoderConfig) redundancy {
	r := redundancy{limit: MaxRedundancy, deadline: c.Deadline, target: 1 - c.Delivery, urgent: c.UrgentLoss}
	r.configure(c)
	return r
}

func (r *redundancy) configure(c *EncoderConfig) {
	if r.setting = c.Redundancy; !c.combines() {
		r.setting = RedundancyOff
	}
	r.replan()
}

// replan computes the number of copies of new frames from the observed loss.
func (r *redundancy) replan() {
	loss := r.loss.assume()
	for n := range r.lost {
		r.lost[n] = r.loss.allLost(loss, n)
	}
	observed := loss * float64(r.loss.seen) // number of losses that the estimate is based on
	r.budget = r.target * observed / (observed + uncertainLosses)
	if r.copies = max(0, r.setting); r.setting != RedundancyAuto {
		return
	}
	for r.copies < MaxRedundancy && r.lost[r.copies+2] > r.target {
		r.copies++
	}
}

// everyPayload requests that every payload until a frame's deadline contains it.
const everyPayload = math.MaxUint8

// payloads returns the number of payloads that are to contain the next frame. must is the number of
// them for which held frames are sent early, if a deadline requires it. A copy in a datagram of its
// own costs far more than a copy in a payload that is sent anyway, so must excludes the additional
// copy of some frames unless the target is missed without it.
func (r *redundancy) payloads() (planned, must uint8) {
	n := r.copies + 1
	switch {
	case r.setting != RedundancyAuto:
		return uint8(n), uint8(n)
	case r.deadline > 0 && r.loss.bursts():
		return everyPayload, 0 // a loss burst leaves no other chance
	}
	must = uint8(n)
	if r.lost[n] > r.target && r.excess+r.lost[n]-r.budget > 0 {
		n++
		if r.excess > float64(r.deadline)*r.lost[n-1] {
			must = uint8(n)
		}
	}
	r.add(r.lost[n] - r.budget)
	return uint8(n), must
}

// limited returns the number of payloads, limited to the redundancy limit.
func (r *redundancy) limited(payloads uint8) uint8 { return min(payloads, uint8(r.limit+1)) }

// urgentPayloads returns the number of payloads in consecutive ticks that contain an urgent frame.
func (r *redundancy) urgentPayloads() int {
	n := 1
	for n <= min(r.copies, r.limit) && r.lost[n] > r.urgent {
		n++
	}
	return n
}

// contained adjusts the excess for a frame that n payloads contain instead of the planned number.
func (r *redundancy) contained(n, planned int) {
	if r.setting == RedundancyAuto && max(n, planned) < len(r.lost) {
		r.add(r.lost[n] - r.lost[planned])
	}
}

func (r *redundancy) add(excess float64) {
	r.excess = max(r.excess+excess, min(-r.lost[r.copies+1], -10*r.target))
}

// max returns the maximum number of older payloads that a payload repeats.
func (r *redundancy) max() int {
	n := r.copies
	if r.setting == RedundancyAuto && r.lost[n+1] > r.target {
		n++
	}
	return min(n, r.limit)
}

// lossMeter estimates from acks the probability that a payload is lost, and the same probability
// after a lost payload.
type lossMeter struct {
	loss   float64 // share of lost payloads
	recent float64 // share of lost payloads among the last recentMemory
	again  float64 // share of lost payloads among those after a lost one
	last   bool    // whether the last payload was lost
	seen   int     // payloads on which loss is based, at most lossMemory
	lost   int     // lost payloads, at most againMemory
}

const (
	// The estimates are exponential averages. lossMemory is the time constant of lossMeter.loss in
	// payloads, recentMemory that of lossMeter.recent, and againMemory that of lossMeter.again in
	// losses. lossMeter.loss is set to lossMeter.recent if the share of lost payloads changes.
	lossMemory   = 1024
	recentMemory = 256
	againMemory  = 32
	// uncertainLosses lowers the target while the loss estimate is based on few losses. Without it,
	// the number of copies would more often be too low than too high.
	uncertainLosses = 8
	// minMemory and minAgain are the initial time constants, with which first samples weigh more.
	minMemory = 16
	minAgain  = 4
)

func (m *lossMeter) observe(lost bool) {
	happened := 0.0
	if lost {
		happened = 1
	}
	if m.last {
		m.lost = min(m.lost+1, againMemory)
		m.again += (happened - m.again) / float64(max(minAgain, m.lost))
	}
	m.seen = min(m.seen+1, lossMemory)
	m.loss += (happened - m.loss) / float64(max(minMemory, m.seen))
	m.recent += (happened - m.recent) / float64(max(minMemory, min(m.seen, recentMemory)))
	if m.changed() {
		m.loss, m.seen = m.recent, min(m.seen, recentMemory)
	}
	m.last = lost
}

// changed reports whether the share of lost payloads has changed: by chance, the recent share
// hardly ever differs by three times its standard deviation, or falls to an eighth.
func (m *lossMeter) changed() bool {
	const few = 4. / recentMemory // a few losses after a long time without loss are no change
	difference := m.recent - m.loss
	return difference*difference*2*recentMemory > 9*max(m.loss, few) || m.recent < m.loss/8
}

// againNoise exceeds the usual error of lossMeter.again. A smaller difference from lossMeter.loss
// is no evidence of loss bursts.
const againNoise = 0.1

// allLost returns the probability that the given number of consecutive payloads is lost. loss is
// the share of lost payloads.
func (m *lossMeter) allLost(loss float64, payloads int) float64 {
	again := loss
	if m.again > loss+againNoise {
		again = m.again
	}
	return loss * math.Pow(again, float64(payloads-1))
}

// A stream assumes the typical loss of mobile networks until enough payloads have been observed.
// Without this assumption, frames lost before the first ack that reports loss would be late, or
// never arrive.
const (
	assumedLoss = 0.05
	assumeUntil = 32 // payloads
)

// assume returns the observed share of lost payloads, or the assumed share if too few payloads were
// observed.
func (m *lossMeter) assume() float64 {
	return max(m.loss, assumedLoss*float64(assumeUntil-m.seen)/assumeUntil)
}

func (m *lossMeter) estimates() (share, burst float64) {
	return m.loss, 1 / (1 - min(max(m.again, m.loss), 1-1./lossMemory))
}

// bursts reports whether a payload is much more likely to be lost if the one before was.
func (m *lossMeter) bursts() bool { return m.again > 1./3 && m.again > 2*m.loss }
