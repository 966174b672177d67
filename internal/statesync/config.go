package statesync

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
	"github.com/uplink-rpc/uplink/internal/codec/rowpack"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// Limits of a packet.
const (
	// MaxPacket is the maximum size of a packet in bytes.
	MaxPacket = 16 << 10
	// MaxTicks is the maximum number of ticks whose inputs a packet contains.
	MaxTicks = 32

	maxUpdates = 255
	// maxTickBytes is the maximum size of the inputs of one tick, including 2 bytes per player.
	maxTickBytes = 1024
)

const (
	// newEpoch is the distance between the epochs of a sender and its successor. A receiver
	// recognizes a successor by a distance of at least half of it.
	newEpoch = 64

	defaultBudget = 1024
	defaultTicks  = 16
)

// Config configures both ends. Velocities and Rest must be the same at both; a receiver ignores the
// other fields. Zero fields mean the defaults.
type Config struct {
	// Velocities are the fields that are the rate of change of other fields.
	Velocities []schema.Velocity
	// Rest names an integer field that is above its minimum while the object is at rest. Without
	// Rest, an object is at rest while all fields of class ClassNumber are zero, except for the
	// first, which is the position.
	Rest string
	// Budget is the maximum size of a packet in bytes, at most MaxPacket; default 1024.
	// [Sender.SetBudget] changes it.
	Budget int
	// Ticks is the maximum number of ticks whose inputs are repeated in each packet until they are
	// acked, at most MaxTicks; default 16.
	Ticks int
	// First and Epoch are the first sequence number and epoch of the sender. For a sender that
	// replaces another, whose packets and acks may still arrive, they are the results of
	// [Sender.Next].
	First uint64
	Epoch uint8
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

// perBits is the number of fractional bits of the angle that a quaternion turns in a tick per step
// of its angular velocity.
const perBits = 30

type field struct {
	snapshot.Field
	at         int   // first component
	by         int   // index of the field that is its velocity, or -1
	per        int64 // Velocity.PerTick in steps (Q16), or for an orientation in radians with perBits fractional bits
	trend      int   // index of its first component among the trends of a record, or -1
	zeroAtRest bool
	turn       int64          // steps per turn of an angle, or 0
	grain      quat.Quantizer // quantizer of an orientation
	scale      *scaleWeights  // weights that predict the scale of its residuals
}

// plan is a schema and the relations between its fields.
type plan struct {
	fields     []field
	flags      []int // fields of class ClassInteger
	order      []int // predicted fields, each after its velocity
	strings    []int // fields of class ClassBytes
	zeroAtRest []int // fields of numbers that are zero at rest
	anchor     int   // index of the field that is the position, or -1
	rest       int   // index of the field Config.Rest, or -1
	ints       int
	trends     int              // number of components with a trend
	rare       [rareNumbers]int // levels of rare numbers
	packing    rowpack.Layout
	trendsAt   int // offset of the trends in record.data
	stride     int // length of record.data
}

func newPlan(s *snapshot.Schema, cfg *Config) (*plan, error) {
	p := &plan{anchor: -1, rest: -1}
	var lows, highs []int32
	for _, f := range s.Fields() {
		p.fields = append(p.fields, field{Field: f, at: p.ints, by: -1, trend: -1})
		p.ints += f.N
		for k := range f.N {
			lo, hi := p.fields[len(p.fields)-1].bounds(k)
			lows, highs = append(lows, lo), append(highs, hi)
		}
	}
	for i := range cfg.Velocities {
		if err := p.link(&cfg.Velocities[i]); err != nil {
			return nil, err
		}
	}
	p.sort()
	p.weigh()
	p.packing = rowpack.New(lows, highs)
	p.trendsAt = p.packing.Words() + (len(p.fields)+7)/8
	p.stride = p.trendsAt + p.trends
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
	return slices.IndexFunc(p.fields, func(f field) bool { return f.Name == name })
}

func (p *plan) isVelocity(i int) bool {
	return slices.ContainsFunc(p.fields, func(o field) bool { return o.by == i })
}

func (p *plan) link(v *schema.Velocity) error {
	i, by := p.find(v.Field), p.find(v.Of)
	if i < 0 || by < 0 {
		return fmt.Errorf("statesync: Velocities: velocity %q of %q: no such field", v.Of, v.Field)
	}
	f, o := &p.fields[i], &p.fields[by]
	want, drop, limit := f.N, schema.StepsPerTickBits-16, int64(1)<<31
	if f.Class == schema.ClassQuat {
		want, drop, limit = 3, schema.RadiansPerTickBits-perBits, schema.MaxPerTick
	}
	switch {
	case f.by >= 0 || o.by >= 0 || p.isVelocity(i) || i == by:
		return fmt.Errorf("statesync: Velocities: velocity %q of %q: want two fields, each in one entry only", v.Of, v.Field)
	case f.Class == schema.ClassInteger || f.Class == schema.ClassBytes || o.Class != schema.ClassNumber || o.N != want:
		return fmt.Errorf("statesync: Velocities: velocity %q of %q: want a velocity of %d numbers, of a field of numbers, angles or an orientation", v.Of, v.Field, want)
	case v.PerTick == 0 || v.PerTick < -limit || v.PerTick > limit:
		return fmt.Errorf("statesync: Velocities: velocity %q of %q: PerTick %d, want 1 to %d or its negative", v.Of, v.Field, v.PerTick, limit)
	}
	f.by, f.per = by, (v.PerTick+1<<(drop-1))>>drop
	if most := max(fixed.Abs(int64(o.Lo)), fixed.Abs(int64(o.Hi))); most > 0 && fixed.Abs(f.per) > 1<<48/most {
		return fmt.Errorf("statesync: Velocities: velocity %q of %q: PerTick %d is too large for its bounds", v.Of, v.Field, v.PerTick)
	}
	return nil
}

// sort determines the order of coding: velocities, the numbers that have one, and orientations.
func (p *plan) sort() {
	var rank [3][]int
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
				p.zeroAtRest, f.zeroAtRest = append(p.zeroAtRest, i), true
			}
			switch {
			case f.by >= 0:
				rank[1] = append(rank[1], i)
				continue
			case !p.isVelocity(i):
				f.trend, p.trends = p.trends, p.trends+f.N
			}
			rank[0] = append(rank[0], i)
		case schema.ClassQuat:
			f.grain = quat.NewQuantizer(f.Lo, f.Hi)
			rank[2] = append(rank[2], i)
		case schema.ClassInteger:
			p.flags = append(p.flags, i)
		case schema.ClassBytes:
			p.strings = append(p.strings, i)
		}
	}
	p.order = slices.Concat(rank[:]...)
}

func (p *plan) zero(row []int32) bool {
	for _, i := range p.zeroAtRest {
		f := &p.fields[i]
		for _, v := range row[f.at : f.at+f.N] {
			if v != 0 {
				return false
			}
		}
	}
	return len(p.zeroAtRest) > 0
}

// rests reports whether an object is at rest, and whether all fields that are zero at rest are
// zero.
func (p *plan) rests(row []int32) (rests, zero bool) {
	zero = p.zero(row)
	if p.rest >= 0 {
		f := &p.fields[p.rest]
		return row[f.at] > f.Lo, zero
	}
	return zero, zero
}

func (f *field) bounds(k int) (lo, hi int32) {
	switch {
	case f.Class == schema.ClassQuat && k == 0:
		return 0, 3
	case f.Class == schema.ClassBytes && k > 0:
		return 0, -1 // unsigned
	}
	return f.Lo, f.Hi
}

// Rare numbers are 0 most of the time.
const (
	rareTick     = iota // difference from the expected tick
	rareTicks           // change of the number of ticks with inputs
	rareBehind          // age of the newest inputs in ticks
	rareBytes           // size of a tick's inputs
	rarePosition        // distance from the viewer object
	rareNewID           // difference from the previous id
	rareNumbers
)

// rareLevels returns the expected level of each rare number if it is not 0.
func (p *plan) rareLevels() [rareNumbers]int {
	l := [rareNumbers]int{rareTick: 4, rareTicks: 4, rareBehind: 4, rareBytes: 15, rareNewID: 12}
	if p.anchor >= 0 {
		f := &p.fields[p.anchor]
		// 1/32 of the range of the position.
		l[rarePosition] = int(fixed.Clamp(3*int64(bits.Len32(uint32(f.Hi-f.Lo)))-16, 0, levels-1))
	}
	return l
}

func (p *plan) newState() *modelState {
	s := &modelState{fields: make([]fieldModel, len(p.fields)), flags: make([][4]rangecoder.Prob, len(p.flags)), texts: make([]textModel, len(p.strings)), pace: 1}
	for i := range s.fields {
		rangecoder.Fill(s.fields[i].kept[:], 6000, 4)
	}
	rangecoder.Fill(s.rare[:], 6000, 4)
	for i := range s.flags {
		rangecoder.Fill(s.flags[i][:], 4000, 4)
	}
	for i := range s.texts {
		t := &s.texts[i]
		rangecoder.Fill(t.changed[:], 4000, 4)
		t.length = rangecoder.Prob{P: rangecoder.Half}
		rangecoder.Fill(t.bytes.differs[:], rangecoder.Half, 0)
		rangecoder.Fill(t.bytes.flip[:], rangecoder.Half, 0)
	}
	for i := range s.same {
		rangecoder.Fill(s.same[i][:], rangecoder.Half, 0)
	}
	rangecoder.Fill(s.member[:], 16384, 2)
	s.largest.Init()
	rangecoder.Fill(s.zero[:], rangecoder.Half, 0)
	s.near = rangecoder.Prob{P: rangecoder.Half}
	rangecoder.Fill(s.more[:], rangecoder.Half, 0)
	rangecoder.Fill(s.gone[:], 1000, 8)
	s.regenerated = rangecoder.Prob{P: 1000, N: 8}
	rangecoder.Fill(s.held[:], 60000, 4)
	rangecoder.Fill(s.viewer[:], 60000, 4)
	rangecoder.Fill(s.input[:], 50000, 2)
	rangecoder.Fill(s.inputs.differs[:], 16384, 2)
	rangecoder.Fill(s.inputs.flip[:], 20000, 2)
	return s
}

// weigh sets the weights of all fields.
func (p *plan) weigh() {
	for i := range p.fields {
		f := &p.fields[i]
		switch {
		case f.by >= 0:
			f.scale = &movedScale
		case p.isVelocity(i):
			f.scale = &velocityScale
		default:
			f.scale = &otherScale
		}
	}
}

// clampPrediction limits a prediction, Q4, to the bounds of the field.
func (f *field) clampPrediction(v int64) int64 {
	if f.turn > 0 {
		return int64(f.Lo)*16 + fixed.Mod(v-int64(f.Lo)*16, f.turn*16)
	}
	return fixed.Clamp(v, int64(f.Lo)*16, int64(f.Hi)*16)
}

// wrapDifference returns a difference. Differences of angles are wrapped to at most half a turn.
func (f *field) wrapDifference(d int64) int64 {
	if f.turn > 0 {
		return fixed.Wrap(d, f.turn)
	}
	return d
}

// The data of a record are: the packed row; the logarithms of the fields' residuals (see
// missShift), eight per element; and the changes per tick of the components with a trend (Q8).

func (p *plan) wordsOf(r *record) []uint64 { return r.data[:p.packing.Words()] }

func (p *plan) missesOf(r *record) []uint64 { return r.data[p.packing.Words():p.trendsAt] }

func (p *plan) trendsOf(r *record) []uint64 { return r.data[p.trendsAt:] }
