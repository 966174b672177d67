package path

import (
	"time"

	"github.com/uplink-rpc/uplink/internal/transport/wire"
)

const (
	// Unit is the unit of the time of arrival in a report.
	Unit = 100 * time.Microsecond

	// A report is due reportInterval after the last one, if reportBytes have arrived since then. It
	// waits for a datagram to which it can be added. After reportPatience it is sent alone, if
	// aloneBytes have arrived.
	reportInterval = 30 * time.Millisecond
	reportBytes    = 1000
	aloneBytes     = 2 * reportBytes
	reportPatience = 40 * time.Millisecond
)

// Arrivals counts arriving datagrams, and decides when to report them. The zero value is ready for
// use. Not safe for concurrent use.
type Arrivals struct {
	report   wire.Report
	bytes    int           // arrived since the last report
	due      time.Duration // when the next report is due; 0: none is
	reported time.Duration // time of the last report
}

// Arrived counts a datagram. newest reports whether its packet number is above that of all earlier
// ones. size is its size in bytes with all headers, or 0 if it does not bring a report nearer.
func (a *Arrivals) Arrived(now time.Duration, number uint64, newest bool, size int) {
	a.report.Count++
	if newest {
		a.report.Newest, a.report.Arrived = uint16(number), uint16(now/Unit)
	}
	if a.bytes += size; a.bytes >= reportBytes && a.due == 0 {
		a.due = max(now, a.reported+reportInterval)
	}
}

// Due reports whether a report should be added to a datagram now.
func (a *Arrivals) Due(now time.Duration) bool { return a.due != 0 && now >= a.due }

// Deadline returns the time at which a report should be sent even without a datagram to which it
// can be added. It returns false if less than aloneBytes have arrived since the last report.
func (a *Arrivals) Deadline() (time.Duration, bool) {
	return a.due + reportPatience, a.bytes >= aloneBytes
}

// Take returns the next report, which is sent at now.
func (a *Arrivals) Take(now time.Duration) wire.Report {
	a.bytes, a.due, a.reported = 0, 0, now
	return a.report
}
