package client

import (
	"time"

	"github.com/uplink-rpc/uplink/internal/queuedelay"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/seq"
	"github.com/uplink-rpc/uplink/ringcache"
)

const (
	// minPathRate is the lowest bit rate to which congestion alone reduces a connection: about half
	// of the narrowest link on which games are played, 64 kbit/s. At a lower rate, a flow that
	// fills every queue, such as an upload, would take the rest of the link.
	minPathRate = 36_000
	// pathBackoff is the part of the bit rate that remains after a window with congestion, and
	// pathIncrease the growth of the limit in one without.
	pathBackoff  = 0.75
	pathIncrease = 1.05
	// sustained is the number of consecutive windows with a queue, or of consecutive excessive loss
	// rates, that count as congestion. A shorter series is a burst.
	sustained = 2
	// excessiveLoss is the share of lost payloads for which redundancy cannot compensate. A smaller
	// loss without a queue is usual on radio links and has no effect. With a queue, uploads on
	// narrow links cause a loss of up to a quarter.
	excessiveLoss = 1. / 3
	// minRoundTrips is the number of round-trip times that a decision requires, and minLossSample
	// the number of payloads that a loss rate requires.
	minRoundTrips = 3
	minLossSample = 100
	// unusedLimit is a share of the limit. If the rate is below this share although nothing reduces
	// it, the limit has no effect and is removed.
	unusedLimit = 0.7
)

// congestion limits the bit rate of a link while its path is congested: while the round-trip
// times of RPCs' payloads show a queue, or their loss is excessive. The zero value has no limit.
type congestion struct {
	delay   queuedelay.Meter
	limit   float64 // bits/s; 0: none
	queued  int     // consecutive windows with a queue
	lossy   int     // consecutive loss rates above excessiveLoss
	counted rpcdelta.DeliveryStats
}

// step processes a window in which the connection sent at a bit rate. total counts the link's
// payloads so far, and reduced reports whether the limit has reduced the rate.
func (c *congestion) step(now time.Time, rate float64, total rpcdelta.DeliveryStats, reduced bool) {
	c.measureLoss(total)
	if c.delay.Samples() < minRoundTrips {
		return
	}
	queue := c.delay.End(now)
	c.queued++
	if queue <= queuedelay.Threshold {
		c.queued = 0
	}
	queued, lossy := c.queued >= sustained, c.lossy >= sustained
	high := c.limit == 0 || c.limit > minPathRate
	switch {
	case queued && lossy:
		c.reduce(rate, 0)
	case high && (queued || lossy):
		c.reduce(rate, minPathRate)
	case high && queue > queuedelay.Threshold/2, c.limit == 0:
	case !reduced && rate < unusedLimit*c.limit:
		c.limit = 0
	default:
		c.limit *= pathIncrease
	}
}

// reduce lowers the limit below the rate, but not below a minimum.
func (c *congestion) reduce(rate, minimum float64) {
	limit := max(minimum, pathBackoff*rate)
	switch {
	case c.limit == 0 && limit >= rate: // the rate is already at the minimum
	case c.limit == 0 || limit < c.limit:
		c.limit = limit
	}
}

// measureLoss evaluates the loss rate once enough payloads have been counted.
func (c *congestion) measureLoss(total rpcdelta.DeliveryStats) {
	lost, processed := total.Lost-c.counted.Lost, total.Processed-c.counted.Processed
	if lost+processed < minLossSample {
		return
	}
	c.counted = total
	c.lossy++
	if float64(lost) <= excessiveLoss*float64(lost+processed) {
		c.lossy = 0
	}
}

// departures stores the times at which the last payloads of an RPC were sent, to measure round-trip
// times.
type departures struct {
	sent  *ringcache.Ring[time.Time] // time of sending, by sequence number
	last  uint16                     // newest payload
	acked uint16                     // newest payload that was acked
	any   bool
}

// maxDepartures is the number of payloads whose times are stored.
const maxDepartures = 128

func newDepartures() departures {
	return departures{sent: ringcache.New[time.Time](maxDepartures)}
}

// put records that payload n is sent.
func (d *departures) put(n uint64, now time.Time) {
	d.last = uint16(n)
	*d.sent.Put(uint64(d.last)) = now
}

// take returns the round-trip time of the newest payload of an ack. It returns 0 if an earlier ack
// contained this payload or a newer one.
func (d *departures) take(a *rpcdelta.Ack, now time.Time) time.Duration {
	newest := seq.Recent(a.Seq, d.last)
	if a.None || d.any && int16(newest-d.acked) <= 0 {
		return 0
	}
	at := d.sent.Get(uint64(newest))
	if at == nil {
		return 0
	}
	d.acked, d.any = newest, true
	return now.Sub(*at)
}

// reset discards all times.
func (d *departures) reset() {
	d.sent.Reset()
	d.any = false
}
