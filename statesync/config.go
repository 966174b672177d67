package statesync

import (
	"fmt"
	"math"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
)

// Limits of a packet.
const (
	// maxUpdates is the most updates.
	maxUpdates = 255
	// MaxPacket is the most bytes.
	MaxPacket = 16 << 10
	// MaxTicks is the most ticks of inputs.
	MaxTicks = 32
	// maxTickBytes is the most bytes that the inputs of one tick may take, each with 2 for its player and length.
	maxTickBytes = 1024
)

// newEpoch is the distance between the epochs of a sender and its successor. A receiver recognizes
// a successor by a distance of at least half of it.
const newEpoch = 64

// Defaults of a Config.
const (
	defaultBudget = 1024
	defaultTicks  = 16
)

// Config says how both ends work. Velocities and Rest must be the same at both, the rest is the sender's alone.
type Config struct {
	Velocities []schema.Velocity
	// Rest names a Flags field that is above its Lo while the object is at rest. Without it an object rests while its
	// Motion fields are zero, all but the first.
	Rest string
	// Budget is the most bytes of a packet, at most MaxPacket; default defaultBudget. [Sender.SetBudget] changes it.
	Budget int
	// Ticks is of how many ticks a packet repeats the inputs as long as they are not acked, 1 to MaxTicks; default
	// defaultTicks.
	Ticks int
	// First and Epoch are the number of the first packet and the epoch that the sender begins in. Where there was a sender
	// before it to the same receiver's place, whose packets and acks may still come, First is the number after its last one,
	// and Epoch [newEpoch] more than the one it came to.
	First uint64
	Epoch uint8
	// NoDelta has every update sent whole, and nothing learned from packet to packet.
	NoDelta bool
}

func (c *Config) fill() error {
	if c.Budget == 0 {
		c.Budget = defaultBudget
	}
	if c.Ticks == 0 {
		c.Ticks = defaultTicks
	}
	if c.Ticks < 0 || c.Ticks > MaxTicks {
		return fmt.Errorf("statesync: Ticks: inputs of %d ticks, want 1 to %d", c.Ticks, MaxTicks)
	}
	return checkBudget(c.Budget)
}

func checkBudget(bytes int) error {
	if bytes < 1 || bytes > MaxPacket {
		return fmt.Errorf("statesync: Budget: %d bytes a packet, want 1 to %d", bytes, MaxPacket)
	}
	return nil
}

// perBits are of the fraction of the angle that a Quat turns in a tick for each step of its angular velocity.
const perBits = 30

// field is a field as updates code it.
type field struct {
	snapshot.Field
	at    int            // its first component
	by    int            // the field that is its velocity, or -1
	per   int64          // PerTick: Q16 of steps, or of radians in perBits
	trend int            // of a field without a velocity, its first component in record.trend
	still bool           // it is zero at rest
	turn  int64          // steps of an Angle's turn, or 0
	grain quat.Quantizer // of a Quat
}

// plan is a schema and how its fields hang together.
type plan struct {
	fields  []field
	flags   []int // fields of Flags
	order   []int // the others, each after its velocity
	strings []int // fields of Bytes
	still   []int // Motion fields that are zero at rest
	anchor  int   // the field that is a place, or -1
	rest    int   // the field of Flags that says that an object rests, or -1
	ints    int
	trends  int        // components of record.trend
	rare    [rares]int // levels of numbers that are rare
}

func newPlan(s *snapshot.Schema, cfg *Config) (*plan, error) {
	p := &plan{anchor: -1, rest: -1}
	for _, f := range s.Fields() {
		p.fields = append(p.fields, field{Field: f, at: p.ints, by: -1, trend: -1})
		p.ints += f.N
	}
	for i := range cfg.Velocities {
		if err := p.link(&cfg.Velocities[i]); err != nil {
			return nil, err
		}
	}
	if err := p.sort(); err != nil {
		return nil, err
	}
	p.rare = p.rareLevels()
	if cfg.Rest == "" {
		return p, nil
	}
	p.rest = p.find(cfg.Rest)
	if p.rest < 0 || p.fields[p.rest].Class != schema.ClassInteger {
		return nil, fmt.Errorf("statesync: Rest: %q is no field of Flags", cfg.Rest)
	}
	return p, nil
}

func (p *plan) find(name string) int {
	for i := range p.fields {
		if p.fields[i].Name == name {
			return i
		}
	}
	return -1
}

func (p *plan) link(v *schema.Velocity) error {
	i, by := p.find(v.Field), p.find(v.Of)
	if i < 0 || by < 0 {
		return fmt.Errorf("statesync: Velocities: velocity %q of %q: no such field", v.Of, v.Field)
	}
	f, o := &p.fields[i], &p.fields[by]
	want, used := f.N, false
	if f.Class == schema.ClassQuat {
		want = 3
	}
	for k := range p.fields {
		used = used || p.fields[k].by == i
	}
	switch {
	case f.by >= 0 || o.by >= 0 || used || i == by:
		return fmt.Errorf("statesync: Velocities: velocity %q of %q: a field has one velocity, which has none", v.Of, v.Field)
	case f.Class == schema.ClassInteger || f.Class == schema.ClassBytes || o.Class != schema.ClassNumber || o.N != want:
		return fmt.Errorf("statesync: Velocities: velocity %q of %q: kind or number of components do not go together", v.Of, v.Field)
	case !(math.Abs(v.PerTick) > 0 && math.Abs(v.PerTick) <= 1<<12):
		return fmt.Errorf("statesync: Velocities: velocity %q of %q: PerTick %v, want up to %d", v.Of, v.Field, v.PerTick, 1<<12)
	}
	unit := 1 << 16
	if f.Class == schema.ClassQuat {
		unit = 1 << perBits
	}
	f.by, f.per = by, int64(math.Round(v.PerTick*float64(unit)))
	if most := max(fixed.Abs(int64(o.Lo)), fixed.Abs(int64(o.Hi))); most > 0 && fixed.Abs(f.per) > 1<<48/most {
		return fmt.Errorf("statesync: Velocities: velocity %q of %q: PerTick %v is too large for its bounds", v.Of, v.Field, v.PerTick)
	}
	return nil
}

// sort finds the order of coding: numbers, those that move by them, orientations.
func (p *plan) sort() error {
	rank := [3][]int{}
	for i := range p.fields {
		f := &p.fields[i]
		switch f.Class {
		case schema.ClassNumber, schema.ClassAngle:
			switch {
			case f.Class == schema.ClassAngle:
				f.turn = int64(f.Hi) - int64(f.Lo) + 1
			case p.anchor < 0:
				p.anchor = i
			case f.Lo <= 0 && f.Hi >= 0:
				p.still, f.still = append(p.still, i), true
			}
			if f.by >= 0 {
				rank[1] = append(rank[1], i)
			} else {
				rank[0] = append(rank[0], i)
				f.trend, p.trends = p.trends, p.trends+f.N
			}
		case schema.ClassQuat:
			f.grain = quat.NewQuantizer(f.Lo, f.Hi)
			rank[2] = append(rank[2], i)
		case schema.ClassInteger:
			p.flags = append(p.flags, i)
		case schema.ClassBytes:
			p.strings = append(p.strings, i)
		default:
			return fmt.Errorf("statesync: field %q: kind %d is not carried", f.Name, f.Class)
		}
	}
	for _, r := range rank {
		p.order = append(p.order, r...)
	}
	return nil
}

// zero says whether the fields that are zero at rest are so.
func (p *plan) zero(row []int32) bool {
	for _, i := range p.still {
		f := &p.fields[i]
		for _, v := range row[f.at : f.at+f.N] {
			if v != 0 {
				return false
			}
		}
	}
	return len(p.still) > 0
}

// rests says whether an object is at rest, by whether what is zero then is zero.
func (p *plan) rests(row []int32, zero bool) bool {
	if p.rest >= 0 {
		f := &p.fields[p.rest]
		return row[f.at] > f.Lo
	}
	return zero
}

// bounds are those of component k.
func (f *field) bounds(k int) (lo, hi int32) {
	if f.Class == schema.ClassQuat && k == 0 {
		return 0, 3
	}
	return f.Lo, f.Hi
}
