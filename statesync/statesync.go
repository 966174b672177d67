package statesync

import (
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/malformed"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/statesync"
)

// MaxTicks is the maximum number of ticks whose inputs a packet contains.
const MaxTicks = statesync.MaxTicks

// Errors of [Sender.Append]. Nothing was sent, and priorities continue to accumulate.
var (
	// ErrBudget reports that not even one update fits into the budget. The text contains the size
	// of the smallest packet that was tried.
	ErrBudget = statesync.ErrBudget
	// ErrTick reports a tick that is not after the previous one.
	ErrTick = statesync.ErrTick
)

// Input contains the input of a player for one tick, in the game's own encoding.
type Input struct {
	Player uint8
	Data   []byte // at most 255 bytes
}

// TickInputs are all players' inputs of one tick.
type TickInputs struct {
	Tick int64
	// Missing reports that the DS had no inputs for the tick. A tick without any player's input is
	// not missing.
	Missing bool
	Inputs  []Input // by ascending player
}

// Config configures both ends, with the same Rest. Zero fields mean the defaults.
type Config struct {
	// Rest names an integer field that is above its minimum while the object is at rest. Without
	// Rest, an object is at rest while all its vectors and numbers are zero, except for the first,
	// which is the position.
	Rest string
	// Budget is the maximum size of a packet in bytes, at most 16,384; default 1024.
	// [Sender.SetBudget] changes it. A receiver ignores it.
	Budget int
	// Ticks is the maximum number of ticks whose inputs are repeated in each packet until they are
	// acked, at most MaxTicks; default 16. A receiver ignores it.
	Ticks int
}

// World contains the objects of the newest tick and their priorities, which the senders of all
// players share. Its senders may be used at the same time, but not while a method of the World is
// called.
type World[T any] struct {
	typ       *snapshot.Type[T]
	cfg       statesync.Config
	world     *statesync.Shared
	next, set *snapshot.Set // set that Put fills, and set of the newest tick
}

// NewWorld returns a world without objects, for a simulation of ticksPerSecond. name is the name of
// the objects in errors. An error names the invalid field or setting.
func NewWorld[T any](name string, ticksPerSecond float64, cfg Config) (*World[T], error) {
	typ, c, err := configure[T](name, ticksPerSecond, cfg)
	if err != nil {
		return nil, err
	}
	w, err := statesync.NewShared(typ.Schema(), c)
	if err != nil {
		return nil, err
	}
	return &World[T]{typ, c, w, typ.Schema().NewSet(), typ.Schema().NewSet()}, nil
}

func configure[T any](name string, ticksPerSecond float64, cfg Config) (*snapshot.Type[T], statesync.Config, error) {
	c := statesync.Config{Rest: cfg.Rest, Budget: cfg.Budget, Ticks: cfg.Ticks}
	typ, err := snapshot.Compile[T](name)
	if err != nil {
		return nil, c, err
	}
	atRate, err := typ.Source().AtRate(ticksPerSecond)
	if err != nil {
		return nil, c, err
	}
	c.Velocities = atRate.Velocities()
	return typ, c, nil
}

// Put adds an object to the next tick. Its id must be higher than all others. If an id is reused
// for another object, that object must have another generation. If a field cannot hold its value,
// the error wraps a *schema.RangeError. After an error the tick is unchanged.
func (w *World[T]) Put(id uint16, generation uint8, v *T) error {
	return w.typ.Add(w.next, snapshot.Object{ID: id, Generation: generation}, v)
}

// SetTick starts a tick with the objects that were put since the last call. tick must not be before
// the previous one. An error wraps [ErrTick]; the objects are then discarded.
func (w *World[T]) SetTick(tick int64) error {
	err := w.world.SetTick(tick, w.next)
	if err == nil {
		w.next, w.set = w.set, w.next
	}
	w.next.Reset()
	return err
}

// Prioritize sets the priority of an object for all players, until it is changed; default 0.
// [Sender.Prioritize] sets another one for one player. After an error nothing is changed.
func (w *World[T]) Prioritize(id uint16, priority float64) error {
	return w.world.Prioritize(id, priority)
}

// NewSender returns a sender of the world's objects to one player. former is the sender that it
// replaces, for example at a new connection of the player, or nil: packets and acks of that may
// still arrive. An error names the invalid setting.
func (w *World[T]) NewSender(former *Sender) (*Sender, error) {
	cfg := w.cfg
	if former != nil {
		cfg.First, cfg.Epoch = former.s.Next()
	}
	s, err := w.world.NewSender(cfg)
	if err != nil {
		return nil, err
	}
	return &Sender{s: s}, nil
}

// Sender encodes the packets of one player. Not safe for concurrent use.
type Sender struct {
	s      *statesync.Sender
	inputs []statesync.Input
}

// SetBudget sets the maximum size of the following packets in bytes, 1 to 16,384.
func (s *Sender) SetBudget(bytes int) error { return s.s.SetBudget(bytes) }

// SetViewer sets the viewer object, usually the player's own. Positions of objects without a
// baseline are coded relative to it if that is shorter.
func (s *Sender) SetViewer(id uint16) { s.s.SetViewer(id) }

// Prioritize sets the priority of an object for the next packet, instead of that of
// [World.Prioritize]. Priorities accumulate until the object is sent. For an object at rest, the
// priority that it had when it last moved counts instead, if that is higher, until the final state
// of the object is acked. After an error nothing is changed.
func (s *Sender) Prioritize(id uint16, priority float64) error { return s.s.Prioritize(id, priority) }

// AddInputs adds all players' inputs of a tick, by ascending player, to be sent until they are
// acked. Each call must have a later tick than the call before. A tick that is omitted is reported
// as TickInputs.Missing. The inputs are copied. After an error nothing is changed.
func (s *Sender) AddInputs(tick int64, inputs ...Input) error {
	s.inputs = s.inputs[:0]
	for _, i := range inputs {
		s.inputs = append(s.inputs, statesync.Input(i))
	}
	return s.s.AddInputs(tick, s.inputs...)
}

// Append appends the packet of the world's tick, which must be after that of the previous packet,
// and returns the extended slice. The packet contains the inputs that are not acked, and as many
// updates of the world's objects as fit into the budget, those with the highest accumulated
// priorities first. Errors are [ErrTick] and [ErrBudget]; dst is then unchanged. Append does not
// allocate once warm if dst has room.
func (s *Sender) Append(dst []byte) ([]byte, error) {
	dst, _, err := s.s.Append(dst)
	return dst, err
}

// Ack processes an ack of the receiver, of which any input is safe. Old and repeated acks have no
// effect. An error wraps snapshot.ErrMalformed, or snapshot.ErrAck if the ack is of a packet that
// was never sent; the ack then has no effect either. The sender restarts if an ack requests a
// reset, or reports a packet as missing that an earlier ack reported as decoded.
func (s *Sender) Ack(ack []byte) error {
	a, rest, err := statesync.ParseAck(ack)
	if err == nil && len(rest) > 0 {
		err = malformed.Err
	}
	if err != nil {
		return err
	}
	return s.s.Ack(a)
}

// Receiver decodes the packets of one [Sender], which may be lost, duplicated, reordered or forged.
// Not safe for concurrent use.
type Receiver[T any] struct {
	typ    *snapshot.Type[T]
	r      *statesync.Receiver
	update Update[T]
	inputs []Input
}

// Update is a decoded packet: states and inputs of the sender's simulation.
type Update[T any] struct {
	Tick int64
	// Late reports that a packet with a later tick was decoded before.
	Late bool
	// First reports that this is the first packet of a new sender. Ticks and objects of earlier
	// packets are obsolete.
	First bool
	// Inputs contains the inputs of ticks that no earlier packet contained, oldest first.
	Inputs []TickInputs
	// Objects are the updates of objects, by ascending id.
	Objects []Object[T]
}

// Object is the state of an object, or its removal.
type Object[T any] struct {
	ID         uint16
	Generation uint8
	// Gone reports that the object was removed. State is undefined in this case.
	Gone  bool
	State T
}

// NewReceiver returns a receiver of the objects of a [World] with the same T, ticksPerSecond and
// Config.Rest. An error names the invalid field or setting.
func NewReceiver[T any](name string, ticksPerSecond float64, cfg Config) (*Receiver[T], error) {
	typ, c, err := configure[T](name, ticksPerSecond, cfg)
	if err != nil {
		return nil, err
	}
	r, err := statesync.NewReceiver(typ.Schema(), c)
	if err != nil {
		return nil, err
	}
	return &Receiver[T]{typ: typ, r: r}, nil
}

// Decode decodes a packet and returns its update, which is valid until the next call. Any input is
// safe. An error wraps one of snapshot.ErrLate, snapshot.ErrBaselineMissing, snapshot.ErrDesync and
// snapshot.ErrMalformed; the packet is not acked. Only errors, strings and fields that are encoded
// as msgpack allocate.
func (r *Receiver[T]) Decode(packet []byte) (*Update[T], error) {
	u, err := r.r.Decode(packet)
	if err != nil {
		return nil, err
	}
	out := &r.update
	out.Tick, out.Late, out.First = u.Tick, u.Late, u.First
	out.Objects = slices.Grow(out.Objects[:0], len(u.Objects))[:len(u.Objects)]
	for i := range u.Objects {
		from, o := &u.Objects[i], &out.Objects[i]
		o.ID, o.Generation, o.Gone = from.ID, from.Generation, from.Gone
		if o.Gone {
			continue
		}
		if err := r.typ.Restore(&o.State, from.Row); err != nil {
			return nil, err
		}
	}
	count := 0
	for _, t := range u.Inputs {
		count += len(t.Inputs)
	}
	out.Inputs, r.inputs = out.Inputs[:0], slices.Grow(r.inputs[:0], count)
	for _, t := range u.Inputs {
		from := len(r.inputs)
		for _, i := range t.Inputs {
			r.inputs = append(r.inputs, Input(i))
		}
		out.Inputs = append(out.Inputs, TickInputs{t.Tick, t.Missing, r.inputs[from:len(r.inputs):len(r.inputs)]})
	}
	return out, nil
}

// AppendAck appends an ack of the packets decoded so far, for [Sender.Ack], and returns the
// extended slice. It has 2 or 3 bytes if nothing was lost, and at most 15.
func (r *Receiver[T]) AppendAck(dst []byte) []byte {
	a := r.r.Ack()
	return a.Append(dst)
}
