package worldbench

// link is a simulated link to one client. It has a round-trip time of whole ticks. Losses depend
// only on the seed, the client and the tick, so the same snapshots are lost with any coding.
type link struct {
	seed   uint64
	client int
	loss   float64
	rtt    int // round-trip time in ticks, 1 to maxRTT

	transit [maxRTT + 1]transit // messages in flight, by tick
	any     bool
	newest  uint64 // newest received snapshot
	window  uint64 // bit i is set if snapshot newest-1-i was received
}

// maxRTT is the maximum round-trip time in ticks.
const maxRTT = 50

// transit is a message in flight.
type transit struct {
	sent, lost bool
	snapshot   uint64
}

// Kinds of losses.
const (
	ackLoss   = iota
	datagrams // this and higher values: one for each datagram of a message
)

// chance returns a number from 0 to below 1.
func (l *link) chance(tick, kind int) float64 {
	x := l.seed
	for _, v := range [...]uint64{uint64(l.client), uint64(tick), uint64(kind)} {
		x += v*0x9e3779b97f4a7c15 + 0x7f4a7c15
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		x ^= x >> 31
	}
	return float64(x>>11) / (1 << 53)
}

func (l *link) lost(tick, kind int) bool { return l.chance(tick, kind) < l.loss }

// at returns the message sent at a tick.
func (l *link) at(tick int) *transit { return &l.transit[tick%len(l.transit)] }

// begin begins a tick.
func (l *link) begin(tick int) { *l.at(tick) = transit{} }

// send sends one datagram of a snapshot. If any is lost, the snapshot is lost.
func (l *link) send(tick int, snapshot uint64, index int) {
	t := l.at(tick)
	t.sent, t.snapshot = true, snapshot
	t.lost = t.lost || l.lost(tick, datagrams+index)
}

// arrives returns the message whose ack is due at a tick, one round trip after it was sent, if it
// has arrived.
func (l *link) arrives(tick int) (t transit, ok bool) {
	if tick < l.rtt {
		return transit{}, false
	}
	t = *l.at(tick - l.rtt)
	return t, t.sent && !t.lost
}

// reset discards all state.
func (l *link) reset() { *l = link{seed: l.seed, client: l.client, loss: l.loss, rtt: l.rtt} }

// receive records that a snapshot was received. Numbers must ascend.
func (l *link) receive(n uint64) {
	if l.any {
		l.window = (l.window<<1 | 1) << (n - l.newest - 1)
	}
	l.any, l.newest = true, n
}
