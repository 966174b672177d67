package path

import (
	"math"
	"time"

	"github.com/uplink-rpc/uplink/internal/transport/wire"
)

const (
	// A queue is congestion from threshold on, plus half of the usual variation of delays up to
	// maxVariation; it is empty below emptied, plus the same. Before the first congestion it has to
	// be longer: the usual variation is added, and two decisions in succession or longQueue
	// are needed.
	threshold    = 10 * time.Millisecond
	longQueue    = 50 * time.Millisecond
	emptied      = 4 * time.Millisecond
	maxVariation = 20 * time.Millisecond

	// A decision considers datagrams that left within at least minSpan, and at least minReports
	// reports on them; from longSpan on fewReports are enough.
	minSpan    = 60 * time.Millisecond
	minReports = 3
	longSpan   = 250 * time.Millisecond
	fewReports = 2
	// The rates are measured over one to two spans of rateSpan. From maxGap on, the time between
	// two reports is not a part of them, and the time from a departure to its report is no measure
	// of a queue.
	rateSpan = uint32(200 * time.Millisecond / Unit)
	maxGap   = 2 * time.Second
	// baseSpan is the time for which a minimum of the delay counts at least.
	baseSpan = 10 * time.Second

	// lateReports consecutive reports that are late by maxGap, over at least lateTime, show a
	// queue. After the peer was not there, it reports once or twice on datagrams that waited.
	lateReports = 4
	lateTime    = time.Second

	startRate = 48 << 10 // bytes/s of streams before anything is known
	// minRate is the rate in bytes/s to which congestion reduces a session at most: about half of
	// the narrowest link on which games are played. At a lower rate, another flow that fills every
	// queue would take the rest of the link.
	minRate = 4500
	// worstRate is the same if there is both a queue and excessive loss, or if late reports show a
	// queue of seconds.
	worstRate = 500

	startGrowth = 2    // factor of the rate per decision until congestion is seen
	kept        = 0.93 // part of the capacity that is used after congestion
	// While a queue drains, the part of the rate that is used falls by the queue divided by
	// drainTime, to minDrain at the minimum, for maxDrain at the maximum.
	drainTime = 250 * time.Millisecond
	minDrain  = 0.4
	minFall   = 0.7 // minimum factor of the measured capacity while a queue drains, or soon after
	maxRaise  = 1.1 // maximum factor of the measured capacity per decision while a queue drains
	maxDrain  = 1500 * time.Millisecond
	// After congestion the rate grows by slowly per second, up to nearby, a multiple of the
	// capacity that was measured last. Above that it grows by firstGrowth per second, and each
	// decision raises this growth by the factor faster, up to quickly. A decision raises the rate
	// by at most the factor maxFactor, and only if the part arrives of what was sent has arrived,
	// besides the usual loss.
	slowly      = 0.05
	nearby      = 1.04
	firstGrowth = 0.1
	quickly     = 2.0
	faster      = 1.7
	maxFactor   = 1.5
	arrives     = 0.92
	// used is the share of the rate above which the rate may grow if nothing has waited for it.
	// After unusedTime below it, the limit is forgotten.
	used       = 0.8
	unusedTime = 10 * time.Second
	// Loss is no sign of congestion on radio links, unless a share of at least excessive is lost of
	// lossSample datagrams, twice in succession.
	excessive  = 0.35
	lossSample = 50
	sustained  = 2
	maxLoss    = 0.3 // counts as usual loss at most
	// worldShare is the part of the rate that calls and worlds may use. Messages of worlds are
	// bursts, which need more room than their mean.
	worldShare = 0.92

	// What the rate permits and nothing uses can be used later: what accrues in these times.
	worldBurst  = 60 * time.Millisecond
	streamBurst = 15 * time.Millisecond
)

// Controller estimates the rate that a path carries, from reports on the datagrams that arrive, and
// divides it: calls and acks may always be sent, worlds if they and calls leave room, and streams
// if all others leave room. The one-way delay of datagrams above its minimum is the queue of the
// path in this direction. Congestion reduces the rate to what was delivered. The zero value is
// ready for use. Not safe for concurrent use.
type Controller struct {
	departures
	rate     float64 // bytes/s; 0: not known
	knee     float64 // capacity measured at the last congestion, in bytes/s
	growth   float64 // of the rate, per second
	proven   float64 // rate at the last echo that permits growth, see maxUnproven
	provenAt time.Duration
	limited  bool // congestion was seen: rate limits worlds
	drains   bool // a queue drains
	yields   bool // streams alone make room while it drains

	// What reports have shown:
	known     bool // there was a report
	newest    uint32
	arrived   uint16
	count     uint16
	reportAt  time.Duration // time of the last report
	missing   uint32        // number of datagrams that were not counted as arrived
	last      departure     // of the last datagram of which a delay was measured
	measured  bool          // a delay was measured
	heard     time.Duration
	base      [2]base // minimum delay of the current span and of the one before
	baseAt    time.Duration
	variation time.Duration // of delays
	lastQueue time.Duration
	delivered [2]delivery // of the current span and of the one before

	// Reports on datagrams that left after the last decision:
	changed  uint32 // time of that decision, in units of Unit
	reports  int
	first    departure
	least    time.Duration // least queue
	queue    time.Duration // of the last decision
	since    time.Duration // when the queue began to drain
	unused   time.Duration // since when the rate is not used; 0: it is
	denied   bool          // worlds or streams had to wait
	streamed uint64        // value of streamBytes at the first one

	streamBytes uint64 // bytes of streams so far

	counted, lost uint32        // newest and missing at the start of the current sample of losses
	late          uint8         // consecutive reports on datagrams that left long ago
	lateAt        time.Duration // time of the first of them
	lossy         uint8         // consecutive samples with excessive loss
	loss          float64       // share of lost datagrams of recent samples

	filled  time.Duration // when the accounts were filled
	worlds  float64       // bytes that worlds may send
	streams float64       // bytes that streams may send
}

// base is the delay of a datagram, in units of Unit with any offset, and its size.
type base struct{ delay, size uint16 }

// delivery is what was sent and arrived, and in which time.
type delivery struct {
	sent, arrived     float32 // bytes
	sentIn, arrivedIn uint32  // in units of Unit
}

// Restart discards what was measured, after a change of the path.
func (c *Controller) Restart() {
	c.rate, c.limited, c.drains = 0, false, false
	c.measured, c.variation, c.lastQueue, c.queue = false, 0, 0, 0
	c.delivered, c.reports, c.late = [2]delivery{}, 0, 0
	c.counted, c.lost, c.lossy, c.loss = c.newest, c.missing, 0, 0
}

// Departed records that a datagram is sent. size is its size in bytes with all headers.
func (c *Controller) Departed(now time.Duration, number uint64, size int, stream bool) {
	c.fill(now)
	c.add(now, number, size)
	c.streams -= float64(size)
	if stream {
		c.streamBytes += uint64(size)
	} else {
		c.worlds -= float64(size)
	}
}

// fill adds to the accounts what the rate permits since the last call.
func (c *Controller) fill(now time.Duration) {
	passed := max(now-c.filled, 0).Seconds()
	c.filled = max(c.filled, now)
	worlds, streams := worldShare*c.Rate(), c.Rate()
	if c.drains {
		streams *= c.drainShare()
		if !c.yields {
			worlds = worldShare * streams
		}
	}
	c.worlds = account(c.worlds, passed, worlds, worldBurst)
	c.streams = account(c.streams, passed, streams, streamBurst)
}

// account returns a balance after a time. It is between one second of debt and a burst.
func account(balance, passed, rate float64, burst time.Duration) float64 {
	return max(min(balance+passed*rate, burst.Seconds()*rate), -rate)
}

// MayWorlds reports whether a message of a world may be sent now, whatever its size.
func (c *Controller) MayWorlds(now time.Duration) bool {
	c.fill(now)
	may := !c.limited || c.worlds > 0
	c.denied = c.denied || !may
	return may
}

// StreamRoom returns the number of bytes that streams may send now.
func (c *Controller) StreamRoom(now time.Duration) float64 {
	c.fill(now)
	c.denied = c.denied || c.streams <= 0
	return c.streams
}

// Rate returns the rate that the path carries as far as is known, in bytes/s with all headers.
func (c *Controller) Rate() float64 {
	if c.rate == 0 {
		return startRate
	}
	return c.rate
}

// Limit returns the rate if congestion has shown that the path carries no more; otherwise 0.
func (c *Controller) Limit() float64 {
	if !c.limited {
		return 0
	}
	return c.Rate()
}

// StreamBytes returns the number of bytes that streams have sent, with all headers.
func (c *Controller) StreamBytes() uint64 { return c.streamBytes }

// Queue returns the last measured delay in the queue of the path.
func (c *Controller) Queue() time.Duration { return c.lastQueue }

// drainShare returns the part of the rate that is used while the queue drains.
func (c *Controller) drainShare() float64 {
	return max(1-c.queue.Seconds()/drainTime.Seconds(), minDrain)
}

// Reported processes a report. next is the number of the next datagram. It returns false if the
// report is not about datagrams that were sent, or counts more than were sent. A report that is
// older than the last one has no effect.
func (c *Controller) Reported(now time.Duration, r wire.Report, next uint64) bool {
	number := uint32(next) - uint32(uint16(next)-r.Newest)
	if uint64(uint16(next)-r.Newest) > next || number == uint32(next) {
		return false
	}
	if !c.known {
		c.known, c.newest = true, math.MaxUint32 // the number before the first one
	}
	sent := int32(number - c.newest)
	if sent <= 0 {
		return true
	}
	got := uint32(r.Count - c.count)
	if got > uint32(sent)+c.missing {
		return false
	}
	c.missing += uint32(sent) - got
	if now-c.reportAt >= maxGap { // what was lost while the peer was not there shows nothing
		c.counted, c.lost, c.lossy = number, c.missing, 0
	}
	c.reportAt = now
	if n := number - c.counted; n >= lossSample {
		c.measureLoss(float64(int32(c.missing-c.lost)) / float64(n))
		c.counted, c.lost = number, c.missing
	}
	d, ok := c.find(now, number, uint32(next))
	if !ok && c.spacing == maxSpacing {
		c.delayed(now)
	}
	if ok {
		c.measure(now, r, d, min(float32(got)/float32(sent), 1))
	}
	c.newest, c.count = number, r.Count
	return true
}

// measure processes a report on the datagrams up to d, of which a share arrived.
func (c *Controller) measure(now time.Duration, r wire.Report, d departure, share float32) {
	// The report can have arrived before a later datagram of the group left, by which d.at is
	// estimated.
	if time.Duration(int32(uint32(now/Unit)-d.at))*Unit >= maxGap {
		c.delayed(now)
		return
	}
	c.late = 0
	if !c.measured {
		c.measured, c.baseAt = true, now
		c.base[0] = base{r.Arrived - uint16(d.at), d.size}
		c.base[1] = c.base[0]
	} else if now-c.heard >= maxGap {
		c.delivered = [2]delivery{}
	} else {
		v := &c.delivered[0]
		v.sent += float32(d.bytes - c.last.bytes)
		v.arrived += share * float32(d.bytes-c.last.bytes)
		v.sentIn += d.at - c.last.at
		v.arrivedIn += uint32(r.Arrived - c.arrived)
	}
	c.last, c.arrived, c.heard = d, r.Arrived, now
	sent, rate := c.rates()
	if c.delivered[0].arrivedIn >= rateSpan {
		c.delivered[1], c.delivered[0] = c.delivered[0], delivery{}
	}
	queue, size := c.above(now, r.Arrived-uint16(d.at), d.size)
	if rate > 0 { // the time that the path needs for the datagrams of the group is no queue
		own := d.group - min(d.group, size)
		queue -= min(time.Duration(float64(own)/max(rate, c.Limit())*float64(time.Second)), queue)
	}
	c.variation += ((queue - c.lastQueue).Abs() - c.variation) / 16
	c.lastQueue = queue
	if int32(d.at-c.changed) < 0 {
		return
	}
	if c.reports == 0 {
		c.first, c.least, c.streamed = d, math.MaxInt64, c.streamBytes
	}
	c.reports++
	c.least = min(c.least, queue)
	left := time.Duration(d.at-c.first.at) * Unit
	if sent == 0 || rate == 0 {
		return
	}
	if left >= minSpan && c.reports >= minReports || left >= longSpan && c.reports >= fewReports {
		c.decide(now, left, sent, rate)
	}
}

// delayed processes a report on datagrams that left long ago. It reduces the rate if they show a
// queue.
func (c *Controller) delayed(now time.Duration) {
	if c.late == 0 {
		c.lateAt = now
	}
	if c.late = min(c.late+1, lateReports); c.late == lateReports && now-c.lateAt >= lateTime {
		c.late = 0
		c.fill(now)
		c.rate = max(min(c.Rate(), c.departures.rate(now))/2, worstRate)
		c.knee, c.limited = c.rate, true
	}
	c.reports, c.heard, c.changed = 0, 0, uint32(now/Unit)
}

// measureLoss processes the share of lost datagrams of a sample.
func (c *Controller) measureLoss(share float64) {
	c.lossy = min(c.lossy+1, sustained)
	if share < excessive {
		c.lossy = 0
	}
	c.loss += (min(max(share, 0), maxLoss) - c.loss) / 4
}

// rates returns the rates at which datagrams left and arrived last, in bytes/s.
func (c *Controller) rates() (sent, arrived float64) {
	a, b := &c.delivered[0], &c.delivered[1]
	if in := a.arrivedIn + b.arrivedIn; in >= rateSpan/2 {
		arrived = perSecond(a.arrived+b.arrived, in)
	}
	if in := a.sentIn + b.sentIn; in >= rateSpan/2 {
		sent = perSecond(a.sent+b.sent, in)
	}
	return sent, arrived
}

// perSecond returns bytes per second. The time is in units of Unit.
func perSecond(bytes float32, in uint32) float64 {
	return float64(bytes) / (time.Duration(in) * Unit).Seconds()
}

// above returns by how much a delay exceeds the minimum of the last 10 to 20 s, and the minimum
// size of a datagram in the group that had this minimum. The delay has any offset. size is the
// minimum size in its own group.
func (c *Controller) above(now time.Duration, delay uint16, size uint16) (time.Duration, uint32) {
	if now-c.baseAt >= baseSpan {
		c.base[1], c.base[0], c.baseAt = c.base[0], base{delay, size}, now
	}
	for i := range c.base {
		if int16(delay-c.base[i].delay) < 0 {
			c.base[i] = base{delay, size}
		}
	}
	b := c.base[0]
	if int16(c.base[1].delay-b.delay) < 0 {
		b = c.base[1]
	}
	return time.Duration(delay-b.delay) * Unit, uint32(b.size)
}

// decide changes the rate. sent and delivered are the rates of the last time in bytes/s, and span
// is the time in which the datagrams of this decision left.
func (c *Controller) decide(now, span time.Duration, sent, delivered float64) {
	queue, usual := c.least, min(c.variation, maxVariation)/2
	if c.drains && queue > emptied+usual { // a full path delivers all that it carries
		c.knee = max(c.knee, min(delivered/(1-c.loss), maxRaise*c.knee))
		c.rate = min(max(kept*c.knee, min(c.rate, minRate)), max(c.rate, c.most()))
	}
	if c.drains { // losses are those of the queue that drains
		c.lossy, c.counted, c.lost = 0, c.newest, c.missing
	}
	passed := min(time.Duration(uint32(now/Unit)-c.changed)*Unit, time.Second)
	switch {
	case c.congested(queue, usual), c.lossy >= sustained:
		if !c.drains || now-c.since > maxDrain || queue > c.queue {
			c.reduce(now, sent, delivered, span)
		}
	case c.drains && queue > emptied+usual && now-c.since < maxDrain:
	case c.drains:
		c.fill(now)
		c.drains = false
	case queue > threshold/2+usual: // neither congestion nor room
	case !c.denied && sent < used*c.Rate():
		c.unuse(now)
	case now-c.provenAt <= maxSilence:
		c.grow(sent, float64(c.last.bytes-c.first.bytes)/span.Seconds(), delivered/(1-c.loss), passed)
	}
	c.queue = queue
	c.changed, c.reports, c.denied = uint32(now/Unit), 0, false
}

// congested reports whether the least queue of a decision is congestion. Before the first
// congestion jitter must not limit a session: it can delay all reports of a decision.
func (c *Controller) congested(queue, usual time.Duration) bool {
	if c.limited {
		return queue > threshold+usual
	}
	jitter := min(c.variation, maxVariation)
	return min(c.queue, queue) > threshold+jitter || queue > longQueue+jitter
}

// grow raises the rate. latest is the rate at which the datagrams of this decision left.
func (c *Controller) grow(sent, latest, delivered float64, passed time.Duration) {
	c.unused = 0
	before := c.Rate()
	switch {
	case !c.limited && delivered > arrives*sent:
		c.rate = max(c.Rate(), startGrowth*min(c.Rate(), latest/used))
	case !c.limited:
	case c.rate < nearby*c.knee:
		c.rate *= 1 + slowly*passed.Seconds()
		c.growth = firstGrowth
	case delivered > arrives*sent:
		c.rate *= min(1+c.growth*passed.Seconds(), maxFactor)
		c.growth = min(faster*c.growth, quickly)
	}
	c.rate = min(c.rate, max(before, c.most()))
}

// most returns the rate to which echoes permit the rate to grow.
func (c *Controller) most() float64 { return maxUnproven * max(c.proven, startRate) }

// reduce lowers the rate to what was delivered.
func (c *Controller) reduce(now time.Duration, sent, delivered float64, span time.Duration) {
	c.fill(now)
	rate := c.Rate()
	if !c.limited {
		rate = sent
	}
	least := float64(minRate)
	if c.lossy >= sustained && c.least > threshold {
		least = worstRate
	}
	if rate <= least {
		return
	}
	knee := min(max(delivered/(1-c.loss), sent/8), max(sent, rate))
	if c.limited && now-c.since < maxDrain { // little was sent, so that the last queue drains
		knee = max(knee, minFall*c.knee)
	}
	c.knee = knee
	// Streams alone make room if they are more than what has to go.
	c.yields = float64(c.streamBytes-c.streamed)/span.Seconds() > (1-minDrain)*sent
	c.rate = max(kept*c.knee, least)
	c.limited, c.drains, c.since, c.unused, c.lossy = true, true, now, 0, 0
}

// unuse forgets the limit after a time in which it was not used.
func (c *Controller) unuse(now time.Duration) {
	switch {
	case !c.limited:
	case c.unused == 0:
		c.unused = now
	case now-c.unused >= unusedTime:
		c.limited, c.unused = false, 0
	}
}
