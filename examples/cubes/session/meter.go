package session

import (
	"math"
	"time"

	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/schema"
)

// PopDistance is the minimum distance, in meters, between the drawn and the expected position of a
// cube that counts as a pop. The expected position is the one drawn in the previous tick plus the
// motion that the client simulated or, if the client does not simulate, the motion of the server's
// cube.
const PopDistance = 0.05

// Meter measures a session since its start or the last Reset.
type Meter struct {
	// Ticks is the number of measured ticks. Bytes and Datagrams count the data that the server
	// sent in them. Bytes include the headers down to IP.
	Ticks, Bytes, Datagrams int
	// Rejected is the number of messages that the client rejected, without late ones. LastError is
	// the reason for the last one.
	Rejected  int
	LastError error
	// Position and Turn are the errors of position in meters and of orientation in degrees against
	// the server's world at the time that is drawn. There is one sample per tick and cube that
	// moves or is off. Cubes that the client does not see do not count.
	Position, Turn Distribution
	// Pops is the number of pops. A pop in consecutive ticks counts once.
	Pops int
	// Delay is the age of the drawn state, summed over the ticks with a drawn state.
	Delay time.Duration
	drawn int
	// Updates is the number of received states of cubes. Wait is the longest time between two
	// updates of the same cube, in ticks.
	Updates, Wait int

	// Added to the traffic of the mode: the traffic of previous modes since Reset.
	moreBytes, moreDatagrams int

	waiting   []int
	last      []world.Visual // visuals of the previous tick
	popping   []bool
	lastDrawn bool
}

func (m *Meter) begin(count int) {
	*m = Meter{waiting: make([]int, count), last: make([]world.Visual, count), popping: make([]bool, count)}
}

func (m *Meter) addPast(bytes, datagrams int) {
	m.moreBytes += bytes
	m.moreDatagrams += datagrams
}

// Reset starts a new measurement. The state that pops depend on is kept.
func (m *Meter) Reset() {
	*m = Meter{
		waiting: m.waiting, last: m.last, popping: m.popping, lastDrawn: m.lastDrawn,
		moreBytes: m.moreBytes - m.Bytes, moreDatagrams: m.moreDatagrams - m.Datagrams,
	}
	clear(m.waiting)
}

func (m *Meter) reject(err error) {
	m.Rejected++
	m.LastError = err
}

func (m *Meter) tick(s *Session, now time.Duration) {
	m.Ticks++
	bytes, datagrams := s.down.bytes, s.down.datagrams
	if c, ok := s.sender.(Carrier); ok {
		bytes, datagrams = c.Traffic()
	}
	m.Bytes, m.Datagrams = m.moreBytes+bytes, m.moreDatagrams+datagrams
	for i := range m.waiting {
		if m.waiting[i]++; s.Drawn[i].Unseen {
			m.waiting[i] = 0
		}
	}
	s.receiver.Updated(func(cube int) {
		m.Updates++
		m.waiting[cube] = 0
	})
	for _, w := range m.waiting {
		m.Wait = max(m.Wait, w)
	}
	if s.Drawing {
		m.measureDrawn(s, now)
	}
}

// restTolerance, in meters, is more than half a quantization step of a cube at rest.
const restTolerance = 0.002

func (m *Meter) measureDrawn(s *Session, now time.Duration) {
	here, ok := s.history.at(s.DrawnAt)
	before, was := s.history.at(s.DrawnAt - world.Tick)
	if !ok || !was {
		return
	}
	m.drawn++
	m.Delay += now - s.DrawnAt
	for i := range s.Drawn {
		d, p, q := &s.Drawn[i], here.pose(i), before.pose(i)
		l := m.last[i]
		if m.last[i] = *d; d.Unseen {
			m.popping[i] = false
			continue
		}
		off := distance(d.Position, p.Position)
		if moves := p != q; moves || off > restTolerance {
			m.Position.Add(off)
			m.Turn.Add(angle(d.Orientation, p.Orientation))
		}
		if m.lastDrawn && !l.Unseen {
			motion, simulated := s.receiver.Motion(i)
			if !simulated {
				motion = schema.Vec3{X: p.Position.X - q.Position.X, Y: p.Position.Y - q.Position.Y, Z: p.Position.Z - q.Position.Z}
			}
			l := &l.Position
			pops := distance(schema.Vec3{X: l.X + motion.X, Y: l.Y + motion.Y, Z: l.Z + motion.Z}, d.Position) > PopDistance
			if pops && !m.popping[i] {
				m.Pops++
			}
			m.popping[i] = pops
		}
	}
	m.lastDrawn = true
}

// Merge adds the measurements of another session's meter.
func (m *Meter) Merge(o *Meter) {
	m.Ticks, m.Bytes, m.Datagrams = m.Ticks+o.Ticks, m.Bytes+o.Bytes, m.Datagrams+o.Datagrams
	if m.Rejected += o.Rejected; o.LastError != nil {
		m.LastError = o.LastError
	}
	m.Position.Merge(&o.Position)
	m.Turn.Merge(&o.Turn)
	m.Pops, m.Delay, m.drawn = m.Pops+o.Pops, m.Delay+o.Delay, m.drawn+o.drawn
	m.Updates, m.Wait = m.Updates+o.Updates, max(m.Wait, o.Wait)
}

// Seconds returns the measured time.
func (m *Meter) Seconds() float64 { return float64(m.Ticks) / world.TickRate }

// Kbits returns the bandwidth that the server used, in kbit/s.
func (m *Meter) Kbits() float64 { return float64(m.Bytes) * 8 / 1000 / m.Seconds() }

// PopsPerMinute returns the rate of pops of all cubes together.
func (m *Meter) PopsPerMinute() float64 { return float64(m.Pops) * 60 / m.Seconds() }

// LongestWait returns Wait as a duration.
func (m *Meter) LongestWait() time.Duration { return world.TickTime(m.Wait) }

// MeanDelay returns the mean age of the drawn state.
func (m *Meter) MeanDelay() time.Duration { return m.Delay / time.Duration(max(1, m.drawn)) }

func distance(a, b schema.Vec3) float64 {
	x, y, z := a.X-b.X, a.Y-b.Y, a.Z-b.Z
	return math.Sqrt(x*x + y*y + z*z)
}

func angle(a, b schema.Quat) float64 {
	dot := math.Abs(a.X*b.X + a.Y*b.Y + a.Z*b.Z + a.W*b.W)
	return 2 * math.Acos(min(1, dot)) * 180 / math.Pi
}
