package session

import (
	"math"
	"time"

	"github.com/uplink-rpc/uplink/examples/cubes/game"
	"github.com/uplink-rpc/uplink/examples/cubes/way"
	"github.com/uplink-rpc/uplink/schema"
)

// Pop is how far, in meters, a cube is drawn in one tick from where its motion would have put it, for it to count as a pop.
// Its motion is what the client simulated, or that of the server's cube where the client does not simulate.
const Pop = 0.05

// Meter measures a session from its beginning, or from Reset.
type Meter struct {
	// Ticks were measured. Bytes and Datagrams left the server in them, headers down to IP included.
	Ticks, Bytes, Datagrams int
	// Refused is how many messages were of no use to the client, but for late ones; Trouble the last reason.
	Refused int
	Trouble error
	// Position and Turn are the errors of cubes that move, or are not where they should be, a tick and cube: in meters and
	// degrees, against the server's world at the time that is drawn.
	Position, Turn Distribution
	// Pops is how often a cube jumped; while it does so tick after tick that is one.
	Pops int
	// Delay adds up, over ticks with something to draw, how far what is drawn lies back.
	Delay time.Duration
	drawn int
	// Updates is how many states of cubes that came. Wait is the longest between two of the same cube, in ticks.
	Updates, Wait int

	carried, carriedDatagrams int // by ways that are gone
	begun, begunDatagrams     int // before Reset
	waiting                   []int
	last                      []schema.Vec3
	popping                   []bool
	lastDrawn                 bool
}

func (m *Meter) begin(count int) {
	*m = Meter{waiting: make([]int, count), last: make([]schema.Vec3, count), popping: make([]bool, count)}
}

// carry keeps what was counted of a way that is replaced.
func (m *Meter) carry(bytes, datagrams int) {
	m.carried += bytes
	m.carriedDatagrams += datagrams
}

// Reset begins anew, at the place where things are.
func (m *Meter) Reset() {
	*m = Meter{
		waiting: m.waiting, last: m.last, popping: m.popping, lastDrawn: m.lastDrawn, carried: m.carried, carriedDatagrams: m.carriedDatagrams,
		begun: m.begun + m.Bytes, begunDatagrams: m.begunDatagrams + m.Datagrams,
	}
	clear(m.waiting)
}

func (m *Meter) refused(err error) {
	m.Refused++
	m.Trouble = err
}

// tick measures one.
func (m *Meter) tick(s *Session, now time.Duration) {
	m.Ticks++
	bytes, datagrams := s.down.Bytes, s.down.Datagrams
	if c, ok := s.sender.(way.Carrier); ok {
		bytes, datagrams = c.Carried()
	}
	m.Bytes = m.carried + bytes - m.begun
	m.Datagrams = m.carriedDatagrams + datagrams - m.begunDatagrams
	for i := range m.waiting {
		m.waiting[i]++
	}
	s.receiver.Updated(func(cube int) {
		m.Updates++
		m.waiting[cube] = 0
	})
	for _, w := range m.waiting {
		m.Wait = max(m.Wait, w)
	}
	if s.Shown {
		m.look(s, now)
	}
}

// near is the error below which a cube that the server's world has at rest is right, in meters: half a step of a snapshot.
const near = 0.002

// look compares what is drawn with the server's world.
func (m *Meter) look(s *Session, now time.Duration) {
	here, ok := s.truth.at(s.At)
	before, was := s.truth.at(s.At - game.Tick)
	if !ok || !was {
		return
	}
	m.drawn++
	m.Delay += now - s.At
	for i := range s.Drawn {
		d, p, q := &s.Drawn[i], here.pose(i), before.pose(i)
		off := distance(d.Position, p.at)
		if moves := p != q; moves || off > near {
			m.Position.Add(off)
			m.Turn.Add(angle(d.Orientation, p.turn))
		}
		if m.lastDrawn {
			motion, simulated := s.receiver.Motion(i)
			if !simulated {
				motion = schema.Vec3{X: p.at.X - q.at.X, Y: p.at.Y - q.at.Y, Z: p.at.Z - q.at.Z}
			}
			l := &m.last[i]
			pops := distance(schema.Vec3{X: l.X + motion.X, Y: l.Y + motion.Y, Z: l.Z + motion.Z}, d.Position) > Pop
			if pops && !m.popping[i] {
				m.Pops++
			}
			m.popping[i] = pops
		}
		m.last[i] = d.Position
	}
	m.lastDrawn = true
}

// Merge adds what another session's meter measured.
func (m *Meter) Merge(o *Meter) {
	m.Ticks, m.Bytes, m.Datagrams = m.Ticks+o.Ticks, m.Bytes+o.Bytes, m.Datagrams+o.Datagrams
	if m.Refused += o.Refused; o.Trouble != nil {
		m.Trouble = o.Trouble
	}
	m.Position.Merge(&o.Position)
	m.Turn.Merge(&o.Turn)
	m.Pops, m.Delay, m.drawn = m.Pops+o.Pops, m.Delay+o.Delay, m.drawn+o.drawn
	m.Updates, m.Wait = m.Updates+o.Updates, max(m.Wait, o.Wait)
}

// Seconds that were measured.
func (m *Meter) Seconds() float64 { return float64(m.Ticks) / game.Rate }

// Kbits is what left the server a second, in 1,000 bits.
func (m *Meter) Kbits() float64 { return float64(m.Bytes) * 8 / 1000 / m.Seconds() }

// PopsPerMinute counts those of all cubes.
func (m *Meter) PopsPerMinute() float64 { return float64(m.Pops) * 60 / m.Seconds() }

// LongestWait is Wait as a time.
func (m *Meter) LongestWait() time.Duration { return game.Time(m.Wait) }

// MeanDelay is how far what is drawn lies back.
func (m *Meter) MeanDelay() time.Duration { return m.Delay / time.Duration(max(1, m.drawn)) }

func distance(a, b schema.Vec3) float64 {
	x, y, z := a.X-b.X, a.Y-b.Y, a.Z-b.Z
	return math.Sqrt(x*x + y*y + z*z)
}

// angle is between two rotations, in degrees.
func angle(a, b schema.Quat) float64 {
	dot := math.Abs(a.X*b.X + a.Y*b.Y + a.Z*b.Z + a.W*b.W)
	return 2 * math.Acos(min(1, dot)) * 180 / math.Pi
}
