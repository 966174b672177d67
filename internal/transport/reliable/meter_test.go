package reliable

import (
	"encoding/binary"
	"testing"
	"time"

	kcp "github.com/xtaci/kcp-go/v5"
)

// meter checks what one end sends, from its datagrams and those of its peer alone.
type meter struct {
	t     *testing.T
	start time.Time
	total int // bytes sent, with all headers
	acked int // bytes of messages that the peer has acknowledged
	// lowest is the minimum so far of sent - 3*acked - 32 KiB/s.
	lowest float64
	data   map[uint32]*datum // by sequence number, those that are not acknowledged with all before them
	first  uint32            // the lowest sequence number that is not acknowledged with all before it
	most   int               // transmissions of one segment
}

// datum is a data segment that was sent.
type datum struct {
	size, count int
	acked       bool
}

func newMeter(t *testing.T, start time.Time) meter {
	return meter{t: t, start: start, data: map[uint32]*datum{}}
}

// sent counts a body that the end sends, and checks the bound for each period that ends now.
func (m *meter) sent(now time.Time, b []byte) {
	m.lowest = min(m.lowest, m.excess(now))
	m.total += len(b) + testOverhead
	if len(b) > testMTU {
		m.t.Errorf("%d bytes of segments exceed the MTU", len(b))
	}
	for s := range segmentsOf(b) {
		if s[offCommand] != kcp.IKCP_CMD_PUSH {
			continue
		}
		d := m.data[number(s)]
		if d == nil {
			if m.most == 0 {
				m.first = number(s) // a channel continues with the numbers of the one before
			}
			d = &datum{size: length(s)}
			m.data[number(s)] = d
		}
		d.count++
		m.most = max(m.most, d.count)
	}
	passed := now.Sub(m.start)
	if over := m.excess(now); over > baseBurst+1 || over-m.lowest > maxBudget+1 {
		m.t.Errorf("after %v %d bytes were sent and %d acknowledged; %.0f bytes more than allowed since some moment", passed, m.total, m.acked, over-m.lowest-maxBudget)
	}
	if passed >= time.Second && float64(m.total) > 3*float64(m.acked)+passed.Seconds()*(64<<10) {
		m.t.Errorf("after %v %d bytes were sent and %d acknowledged", passed, m.total, m.acked)
	}
	if m.most > MaxTransmissions {
		m.t.Errorf("a segment was sent %d times", m.most)
	}
}

// excess returns how much was sent beyond what acknowledgments and the base rate allow.
func (m *meter) excess(now time.Time) float64 {
	return float64(m.total) - 3*float64(m.acked) - now.Sub(m.start).Seconds()*(32<<10)
}

// received counts what a body of the peer acknowledges for the first time. It reports false, and
// counts nothing, if that was not sent.
func (m *meter) received(b []byte) bool {
	for s := range segmentsOf(b) {
		una, sn := le32(s[16:]), number(s)
		for n := m.first; int32(una-n) > 0; n++ {
			if m.data[n] == nil {
				return false
			}
		}
		if s[offCommand] == kcp.IKCP_CMD_ACK && int32(sn-m.first) >= 0 && m.data[sn] == nil {
			return false
		}
	}
	for s := range segmentsOf(b) {
		if una := le32(s[16:]); int32(una-m.first) > 0 {
			m.first = una
		}
		for n, d := range m.data {
			if int32(le32(s[16:])-n) > 0 {
				m.ack(d)
				delete(m.data, n)
			}
		}
		if d := m.data[number(s)]; s[offCommand] == kcp.IKCP_CMD_ACK && d != nil {
			m.ack(d)
		}
	}
	return true
}

func (m *meter) ack(d *datum) {
	if !d.acked {
		d.acked = true
		m.acked += d.size
	}
}

func le32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
