package session

import (
	"errors"
	"time"

	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/jitter"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
	"github.com/uplink-rpc/uplink/statesync"
)

// stateReceiver decodes messages for a simulator.
type stateReceiver struct {
	*simulator
	receiver   *statesync.Receiver[world.State]
	ackPending bool
	states     []world.State
	cubes      []int
}

// simulator is the client's simulation. It applies received states at their ticks and simulates on
// from them. It implements the part of Receiver that is independent of the transport.
type simulator struct {
	sim      *world.Simulation
	buffer   *jitter.Buffer[stateSet]
	pending  []pendingTick // released by the jitter buffer, in order
	spare    []stateSet
	playing  bool
	inputs   [inputHistory]tickInput
	last     world.Input
	smooth   bool
	smoother []statesync.Smoother
	updated  []int
	motion   []schema.Vec3 // by simulation, summed over the ticks of the last Draw
	steps    int           // ticks that motion covers, at least 1
	next     stateSet
}

const inputHistory = 256

type tickInput struct {
	tick int
	in   world.Input
}

type stateSet struct {
	cubes  []int
	bodies []world.Body
}

// pendingTick is a tick to simulate, with the states received for it.
type pendingTick struct {
	tick     int
	received bool
	stateSet
}

func newStateReceiver(initial Initial, o Options) (*stateReceiver, error) {
	r := &stateReceiver{}
	var err error
	if r.simulator, err = newSimulator(initial, o); err != nil {
		return nil, err
	}
	r.receiver, err = statesync.NewReceiver[world.State]("Cube", world.TickRate, stateConfig)
	return r, err
}

// newSimulator returns a simulator that starts with the initial world.
func newSimulator(initial Initial, o Options) (*simulator, error) {
	sim, err := world.NewSimulation(initial.World)
	if err != nil {
		return nil, err
	}
	sim.Tick, sim.Round = initial.Tick, !o.NoRound
	sim.Order = 1 << 31 // with the server's order and inputs, both simulations would be identical
	for i := range initial.Bodies {
		sim.Set(i, &initial.Bodies[i])
	}
	r := &simulator{
		sim: sim, smooth: !o.NoSmooth, smoother: make([]statesync.Smoother, len(initial.Bodies)),
		motion: make([]schema.Vec3, len(initial.Bodies)), steps: 1,
	}
	r.buffer, err = jitter.New[stateSet](jitter.Config{Interval: world.Tick})
	return r, err
}

func (r *stateReceiver) Receive(at time.Duration, message []byte) error {
	u, err := r.receiver.Decode(message)
	switch {
	case errors.Is(err, snapshot.ErrLate):
		return nil
	case err != nil:
		return err
	}
	r.ackPending = true
	r.cubes, r.states = r.cubes[:0], r.states[:0]
	for i := range u.Objects {
		o := &u.Objects[i]
		if o.Gone {
			continue
		}
		r.cubes, r.states = append(r.cubes, int(o.ID)), append(r.states, o.State)
	}
	r.accept(at, int(u.Tick), u.Inputs, r.cubes, r.states)
	return nil
}

// accept adds the states at a tick, and inputs, to the jitter buffer.
func (r *simulator) accept(at time.Duration, tick int, inputs []statesync.TickInputs, cubes []int, state []world.State) {
	for _, t := range inputs {
		if len(t.Inputs) == 1 && len(t.Inputs[0].Data) == 1 {
			r.inputs[t.Tick%inputHistory] = tickInput{int(t.Tick), world.Input(t.Inputs[0].Data[0])}
		}
	}
	s := &r.next
	s.cubes, s.bodies = s.cubes[:0], s.bodies[:0]
	for i, cube := range cubes {
		if cube >= len(r.sim.Bodies) {
			continue
		}
		var b world.Body
		state[i].ToBody(&b)
		s.cubes, s.bodies = append(s.cubes, cube), append(s.bodies, b)
	}
	r.buffer.Add(at, uint64(tick), s)
}

// minPending is the number of pending ticks before the first one is simulated. It covers draws
// between which the jitter buffer releases no tick, which others with two make up for.
const minPending = 1

// Draw implements Receiver.
func (r *simulator) Draw(now time.Duration, drawn []world.Visual) (time.Duration, bool) {
	r.pop(now)
	if !r.playing && len(r.pending) <= minPending {
		return 0, false
	}
	r.playing = true
	steps := min(1, len(r.pending))
	if len(r.pending) > 1+minPending {
		steps = 2
	}
	if steps > 0 {
		clear(r.motion)
		r.steps = steps
	}
	for range steps {
		if r.step(&r.pending[0]) != nil {
			return 0, false // the state is out of bounds; later packets correct it
		}
		r.spare = append(r.spare, r.pending[0].stateSet)
		r.pending = append(r.pending[:0], r.pending[1:]...)
	}
	for i := range r.sim.Bodies {
		drawn[i].FromBody(&r.sim.Bodies[i])
		if s := &r.smoother[i]; r.smooth && !s.Settled() {
			p := s.Drawn(statesync.Pose{Position: drawn[i].Position, Orientation: drawn[i].Orientation})
			drawn[i].Position, drawn[i].Orientation = p.Position, p.Orientation
			s.Step(world.Tick.Seconds())
		}
	}
	return world.TickTime(r.sim.Tick), true
}

func (r *simulator) pop(now time.Duration) {
	for {
		var d pendingTick
		if n := len(r.spare); n > 0 {
			d.stateSet, r.spare = r.spare[n-1], r.spare[:n-1]
		}
		tick, state := r.buffer.Pop(now, &d.stateSet)
		if state == jitter.Waiting {
			r.spare = append(r.spare, d.stateSet)
			return
		}
		d.tick, d.received = int(tick), state == jitter.Released
		r.pending = append(r.pending, d)
	}
}

// step simulates up to a pending tick and applies the states received for it.
func (r *simulator) step(d *pendingTick) error {
	if d.tick < r.sim.Tick || d.tick > r.sim.Tick+world.TickRate {
		r.sim.Tick = d.tick - 1 // after a gap, continue at the received tick
	}
	for r.sim.Tick < d.tick {
		if h := r.inputs[(r.sim.Tick+1)%inputHistory]; h.tick == r.sim.Tick+1 {
			r.last = h.in
		}
		r.addPositions(-1)
		if err := r.sim.Step(r.last); err != nil {
			return err
		}
		r.addPositions(1)
	}
	if d.received {
		for k, i := range d.cubes {
			r.correct(i, &d.bodies[k])
		}
	}
	return nil
}

// addPositions adds the positions of all cubes, times sign, to their motion.
func (r *simulator) addPositions(sign float64) {
	for i := range r.motion {
		m, p := &r.motion[i], &r.sim.Bodies[i].Position
		m.X, m.Y, m.Z = m.X+sign*p[0], m.Y+sign*p[1], m.Z+sign*p[2]
	}
}

// Motion implements Receiver.
func (r *simulator) Motion(cube int) (schema.Vec3, bool) {
	m, n := &r.motion[cube], float64(r.steps)
	return schema.Vec3{X: m.X / n, Y: m.Y / n, Z: m.Z / n}, true
}

// correct replaces the state of a cube by the server's.
func (r *simulator) correct(i int, b *world.Body) {
	r.updated = append(r.updated, i)
	was := r.sim.Bodies[i]
	if was == *b {
		return
	}
	r.sim.Set(i, b)
	if r.smooth {
		r.smoother[i].Correct(bodyPose(&was), bodyPose(b))
	}
}

func bodyPose(b *world.Body) statesync.Pose {
	var s world.Visual
	s.FromBody(b)
	return statesync.Pose{Position: s.Position, Orientation: s.Orientation}
}

func (r *stateReceiver) Ack(dst []byte) []byte {
	if !r.ackPending {
		return dst
	}
	r.ackPending = false
	return r.receiver.AppendAck(dst)
}

// Updated implements Receiver.
func (r *simulator) Updated(f func(cube int)) {
	for _, i := range r.updated {
		f(i)
	}
	r.updated = r.updated[:0]
}

// Priorities of cubes. The player's cube is in every packet; moving cubes take precedence over
// resting ones.
const (
	playerPriority = 1_000_000
	movingPriority = 100
	restPriority   = 1
)

// stateSender sends inputs and the states of the cubes with the highest priority.
type stateSender struct {
	every, rate int // ticks between two packets; maximum packets per second
	cubes       *statesync.World[world.State]
	sender      *statesync.Sender
	state       world.State
	buf         []byte
}

func newState(initial Initial, o Options) (Sender, Receiver, error) {
	cubes, err := statesync.NewWorld[world.State]("Cube", world.TickRate, stateConfig)
	if err != nil {
		return nil, nil, err
	}
	sender, err := cubes.NewSender(nil)
	if err != nil {
		return nil, nil, err
	}
	sender.SetViewer(0)
	receiver, err := newStateReceiver(initial, o)
	s := &stateSender{rate: o.Rate, cubes: cubes, sender: sender}
	s.SetBudget(o.Budget)
	return s, receiver, err
}

var stateConfig = statesync.Config{Rest: "Resting"}

// minPacket is the minimum room in a packet, in bytes: smaller ones are mostly headers.
const minPacket = 72

// SetBudget implements Sender. It chooses the highest rate at which packets have room for minPacket
// bytes.
func (s *stateSender) SetBudget(bits int) {
	bytes := maxPayload
	s.every = world.TickRate / s.rate
	for ; bits > 0 && s.every <= world.TickRate; s.every++ {
		if world.TickRate%s.every != 0 {
			continue
		}
		bytes = max(0, bits*s.every/(8*world.TickRate)-packetOverhead)
		if bytes >= minPacket {
			break
		}
	}
	_ = s.sender.SetBudget(max(1, min(maxPayload, bytes))) // the value is always valid
}

func (s *stateSender) Send(f *Frame, emit func([]byte)) error {
	if err := s.sender.AddInputs(int64(f.Tick), statesync.Input{Data: []byte{byte(f.Input)}}); err != nil {
		return err
	}
	if f.Tick%s.every != 0 {
		return nil
	}
	for i := range f.Bodies {
		b := &f.Bodies[i]
		if err := s.cubes.Prioritize(uint16(i), priority(i, b)); err != nil {
			return err
		}
		s.state.FromBody(b)
		if err := s.cubes.Put(uint16(i), 0, &s.state); err != nil {
			return err
		}
	}
	if err := s.cubes.SetTick(int64(f.Tick)); err != nil {
		return err
	}
	b, err := s.sender.Append(s.buf[:0])
	switch {
	case errors.Is(err, statesync.ErrBudget):
		return nil // the user may choose a budget that is too small
	case err != nil:
		return err
	}
	s.buf = b
	emit(b)
	return nil
}

func priority(i int, b *world.Body) float64 {
	switch {
	case i == 0:
		return playerPriority
	case b.Moving():
		return movingPriority
	}
	return restPriority
}

func (s *stateSender) Ack(b []byte) error {
	return s.sender.Ack(b)
}
