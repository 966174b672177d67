package way

import (
	"errors"
	"time"

	"github.com/uplink-rpc/uplink/examples/cubes/game"
	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/jitter"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/statesync"
)

// stateReceiver decodes what comes for a Simulator.
type stateReceiver struct {
	*Simulator
	rounding *game.Rounding
	receiver *statesync.Receiver
	got      bool
	states   []game.State
	cubes    []int
}

// Simulator is a client's game: it simulates on from the states that come, each at its tick, and draws that. Of a
// Receiver it lacks what carries them.
type Simulator struct {
	sim      *game.Simulation
	buffer   *jitter.Buffer[states]
	waiting  []due // released, the next to be simulated first
	spare    []states
	playing  bool
	inputs   [remembered]held
	last     world.Input
	smooth   bool
	smoother []statesync.Smoother
	updated  []int
	motion   []schema.Vec3 // by simulation, in the ticks of the last Draw
	steps    int           // of these, not 0
	next     states
}

// remembered is of how many ticks inputs are kept.
const remembered = 256

// held is an input of a tick.
type held struct {
	tick int
	in   world.Input
}

// states are those of a packet.
type states struct {
	cubes  []int
	bodies []world.Body
}

// due is a tick that is to be simulated, and what came of it.
type due struct {
	tick int
	came bool
	states
}

func newStateReceiver(at Start, o Options) (*stateReceiver, error) {
	r := &stateReceiver{}
	var err error
	if r.Simulator, err = NewSimulator(at, o); err != nil {
		return nil, err
	}
	if r.rounding, err = game.NewRounding(); err != nil {
		return nil, err
	}
	r.receiver, err = statesync.NewReceiver(r.rounding.Schema(), stateConfig(r.rounding, o))
	return r, err
}

// NewSimulator begins where both ends do.
func NewSimulator(at Start, o Options) (*Simulator, error) {
	sim, err := game.NewSimulation(at.World)
	if err != nil {
		return nil, err
	}
	sim.Tick, sim.Round = at.Tick, !o.NoRound
	sim.Order = 1 << 31 // with the server's, and its inputs, both would do the same to the last bit
	for i := range at.Bodies {
		sim.Set(i, &at.Bodies[i])
	}
	r := &Simulator{
		sim: sim, smooth: !o.NoSmooth, smoother: make([]statesync.Smoother, len(at.Bodies)),
		motion: make([]schema.Vec3, len(at.Bodies)), steps: 1,
	}
	r.buffer, err = jitter.New[states](jitter.Config{Interval: game.Tick})
	return r, err
}

func (r *stateReceiver) Receive(at time.Duration, message []byte) error {
	u, err := r.receiver.Decode(message)
	switch {
	case errors.Is(err, statesync.ErrLate):
		return nil
	case err != nil:
		return err
	}
	r.got = true
	r.cubes, r.states = r.cubes[:0], r.states[:0]
	for i := range u.Objects {
		o := &u.Objects[i]
		if o.Gone {
			continue
		}
		var s game.State
		if err := r.rounding.Restore(&s, o.Row); err != nil {
			return err
		}
		r.cubes, r.states = append(r.cubes, int(o.ID)), append(r.states, s)
	}
	r.Take(at, int(u.Tick), u.Inputs, r.cubes, r.states)
	return nil
}

// Take takes the states of cubes at a tick, and inputs, that came at that time.
func (r *Simulator) Take(at time.Duration, tick int, inputs []statesync.TickInputs, cubes []int, state []game.State) {
	for _, t := range inputs {
		if len(t.Inputs) == 1 && len(t.Inputs[0].Data) == 1 {
			r.inputs[t.Tick%remembered] = held{int(t.Tick), world.Input(t.Inputs[0].Data[0])}
		}
	}
	s := &r.next
	s.cubes, s.bodies = s.cubes[:0], s.bodies[:0]
	for i, cube := range cubes {
		if cube >= len(r.sim.Bodies) {
			continue
		}
		var b world.Body
		state[i].Give(&b)
		s.cubes, s.bodies = append(s.cubes, cube), append(s.bodies, b)
	}
	r.buffer.Add(at, uint64(tick), s)
}

// ahead is how many ticks wait before the first is simulated, so that one is there each time, though two may be released
// between two draws and none before the next.
const ahead = 1

// Draw is a Receiver's.
func (r *Simulator) Draw(now time.Duration, drawn []game.Seen) (time.Duration, bool) {
	r.pop(now)
	if !r.playing && len(r.waiting) <= ahead {
		return 0, false
	}
	r.playing = true
	steps := min(1, len(r.waiting))
	if len(r.waiting) > 1+ahead {
		steps = 2
	}
	if steps > 0 {
		clear(r.motion)
		r.steps = steps
	}
	for range steps {
		if r.step(&r.waiting[0]) != nil {
			return 0, false // a state beyond all bounds, which the next packets put right
		}
		r.spare = append(r.spare, r.waiting[0].states)
		r.waiting = append(r.waiting[:0], r.waiting[1:]...)
	}
	for i := range r.sim.Bodies {
		drawn[i].See(&r.sim.Bodies[i])
		if s := &r.smoother[i]; r.smooth && !s.Settled() {
			p := s.Drawn(statesync.Pose{Position: drawn[i].Position, Orientation: drawn[i].Orientation})
			drawn[i].Position, drawn[i].Orientation = p.Position, p.Orientation
			s.Step(game.Tick.Seconds())
		}
	}
	return game.Time(r.sim.Tick), true
}

// pop takes out of the buffer what is due.
func (r *Simulator) pop(now time.Duration) {
	for {
		var d due
		if n := len(r.spare); n > 0 {
			d.states, r.spare = r.spare[n-1], r.spare[:n-1]
		}
		tick, state := r.buffer.Pop(now, &d.states)
		if state == jitter.Waiting {
			r.spare = append(r.spare, d.states)
			return
		}
		d.tick, d.came = int(tick), state == jitter.Released
		r.waiting = append(r.waiting, d)
	}
}

// step simulates up to a tick, under its input, and takes the states that came of it.
func (r *Simulator) step(d *due) error {
	if d.tick < r.sim.Tick || d.tick > r.sim.Tick+game.Rate {
		r.sim.Tick = d.tick - 1 // after a pause all is taken as it comes
	}
	for r.sim.Tick < d.tick {
		if h := r.inputs[(r.sim.Tick+1)%remembered]; h.tick == r.sim.Tick+1 {
			r.last = h.in
		}
		r.move(-1)
		if err := r.sim.Step(r.last); err != nil {
			return err
		}
		r.move(1)
	}
	if d.came {
		for k, i := range d.cubes {
			r.correct(i, &d.bodies[k])
		}
	}
	return nil
}

// move adds where cubes are to their motion, by a sign.
func (r *Simulator) move(sign float64) {
	for i := range r.motion {
		m, p := &r.motion[i], &r.sim.Bodies[i].Position
		m.X, m.Y, m.Z = m.X+sign*p[0], m.Y+sign*p[1], m.Z+sign*p[2]
	}
}

// Motion is a Receiver's.
func (r *Simulator) Motion(cube int) (schema.Vec3, bool) {
	m, n := &r.motion[cube], float64(r.steps)
	return schema.Vec3{X: m.X / n, Y: m.Y / n, Z: m.Z / n}, true
}

// correct puts a cube where the server has it.
func (r *Simulator) correct(i int, b *world.Body) {
	r.updated = append(r.updated, i)
	was := r.sim.Bodies[i]
	if was == *b {
		return
	}
	r.sim.Set(i, b)
	if r.smooth {
		r.smoother[i].Correct(pose(&was), pose(b))
	}
}

func pose(b *world.Body) statesync.Pose {
	var s game.Seen
	s.See(b)
	return statesync.Pose{Position: s.Position, Orientation: s.Orientation}
}

func (r *stateReceiver) Ack(dst []byte) []byte {
	if !r.got {
		return dst
	}
	r.got = false
	a := r.receiver.Ack()
	return a.Append(dst)
}

// Updated is a Receiver's.
func (r *Simulator) Updated(f func(cube int)) {
	for _, i := range r.updated {
		f(i)
	}
	r.updated = r.updated[:0]
}
