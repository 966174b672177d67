package serverclock

import "time"

const (
	// offRate is the difference of the rate from 1 from which on it is reported as off. It is
	// reported as normal again below normalRate.
	offRate    = 0.05
	normalRate = 0.04
)

// Monitor is a [Clock] that reports when the rate of the server's time leaves 1 ± 0.05, and when it
// returns.
type Monitor struct {
	Clock
	Off bool // the rate is off
}

// Watch adds a packet, as Observe does, and reports whether Off changed.
func (m *Monitor) Watch(now, server time.Duration) (changed bool) {
	m.Observe(now, server)
	off := max(m.Rate()-1, 1-m.Rate())
	if off <= offRate && !m.Off || off >= normalRate && m.Off {
		return false
	}
	m.Off = !m.Off
	return true
}
