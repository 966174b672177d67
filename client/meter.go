package client

import (
	"time"

	"github.com/uplink-rpc/uplink/transport"
)

// meterWindow is the time over which rates are measured.
const meterWindow = time.Second

// meter measures what goes each way, in bits a second. It is a state machine without
// a clock, not safe for concurrent use.
type meter struct {
	sent, received float64 // of the last window

	begun                  time.Time
	bitsSent, bitsReceived uint64 // until then
}

// due says whether a window is over, so that step has something to do.
func (m *meter) due(now time.Time) bool { return now.Sub(m.begun) >= meterWindow }

// step takes what went so far.
func (m *meter) step(now time.Time, t *transport.Stats) {
	took := now.Sub(m.begun)
	sent := 8 * (t.BytesSent + transport.IPSize*t.DatagramsSent)
	received := 8 * (t.BytesReceived + transport.IPSize*t.DatagramsReceived)
	if !m.begun.IsZero() {
		m.sent = float64(sent-m.bitsSent) / took.Seconds()
		m.received = float64(received-m.bitsReceived) / took.Seconds()
	}
	m.begun, m.bitsSent, m.bitsReceived = now, sent, received
}

// next gives when step has something to do.
func (m *meter) next() time.Time { return m.begun.Add(meterWindow) }
