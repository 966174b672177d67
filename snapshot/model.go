package snapshot

import (
	"github.com/uplink-rpc/uplink/internal/codec/lms"
	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
	"github.com/uplink-rpc/uplink/schema"
)

// Models, by the distance to the baseline.
const (
	bareModel  = 0 // without references
	modelCount = 6
)

// modelOf returns the number of the model for a distance with references.
func modelOf(distance int64) int {
	switch {
	case distance <= 2:
		return 1
	case distance <= 4:
		return 2
	case distance <= 7:
		return 3
	case distance <= 11:
		return 4
	}
	return 5
}

// model is the parameters of payloads at some distances. Coding a payload does not change them: the
// probabilities are those with which each payload starts.
type model struct {
	weights
	start contexts
}

// classes is the number of classes of motion, and of the weights that depend on them.
const classes = 7

// weights are the parameters of the predictions.
type weights struct {
	motion []motionWeights
	turns  []turnWeights
}

// motionWeights are those of a field of class ClassNumber.
type motionWeights struct {
	position [3][classes]lms.Predictor
	scale    [3][2 * classes]lms.Predictor // in flight or at rest, and on the ground
	roll     [3][5]lms.Predictor           // on the ground: along the ground axis, and across
}

// turnWeights are those of a field of class ClassQuat.
type turnWeights struct {
	turn  [3][2 * classes]lms.Predictor // in flight, and on the ground
	scale [3][2 * classes]lms.Predictor
}

// contexts are the probabilities of all decisions. They adapt while a payload is coded.
type contexts struct {
	numbers   [][numberContexts]rangecoder.IntModel // by field of class ClassNumber
	turns     []turnContexts
	angles    []rangecoder.IntModel
	flags     [][flagContexts]rangecoder.Prob
	restFlags [][2]rangecoder.Prob // integer fields of objects at rest
	strings   []bytesModel
	same      [][64]rangecoder.Prob // by field: unchanged in an object that changed
	changed   [256]rangecoder.Prob
	disturbed [contactContexts][4]rangecoder.Prob // a resting object changed, by contact
	quiet     [3]rangecoder.Prob                  // undisturbed: any, any of a block, this
	removed   [2]rangecoder.Prob
	added     rangecoder.LengthModel // number of objects that are not in the baseline
	gap       rangecoder.LengthModel // between their ids
	physics   rangecoder.LengthModel
}

// turnContexts are those of a field of class ClassQuat.
type turnContexts struct {
	largest quat.LargestModel
	numbers [2]rangecoder.IntModel // in flight and on the ground
}

type bytesModel struct {
	replaced [2]rangecoder.Prob // by whether the object's predicted fields changed
	length   [1]rangecoder.Prob // the length changed
	kept     [2]rangecoder.Prob // a byte equals that of the baseline, by whether the previous one did
}

const (
	// contactContexts is the number of contexts of objects at rest: the distance to the nearest
	// moving object in half octaves.
	contactContexts = 128
	flagContexts    = 128
	numberContexts  = 4
)

// Initial levels of counts.
const (
	addedLevel   = 0
	gapLevel     = 6
	physicsLevel = 18
)

// Initial weights in Q16: extrapolation at constant velocity, with more or less of the newest
// change of velocity, depending on the class.
var positionStart = [classes][]int32{
	{1 << 15},
	{1 << 16, 20000, 0, 78000},
	{1 << 16, 60000, 0, 20000},
	{1 << 16},
	{1 << 16, 90000, -20000, 6000, 0, 16000},
	{1 << 16, 60000, 0, 0, 0, 30000},
	{1 << 15, 0, 0, 1 << 14},
}

var rollStart = [3][]int32{
	{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 << 16, 0, 1 << 15},
	{1 << 14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3 << 14},
	{1 << 14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3 << 14},
}

var turnStart = [classes][]int32{
	{1 << 16, 20000, 20000},
	{1 << 16, 13000, 20000, 20000},
	{1 << 16, 20000, 20000, 13000},
	{1 << 16},
	{1 << 16, 40000},
	{1 << 16, 52000},
	{1 << 16},
}

var scaleStart = []int32{20000, 13000, 0, 6500, 26000, 6500, 0, 0}

// Model is the parameters with which both ends code snapshots of objects of one schema. It is
// immutable and safe for concurrent use.
type Model struct {
	models [modelCount]*model
}

func newModel(s *Schema) *Model {
	var m Model
	for i := range m.models {
		m.models[i] = s.newModel()
	}
	return &m
}

// at returns the parameters for references.
func (m *Model) at(refs *refFrames) *model { return m.models[refs.model()] }

// newModel returns a model that has learned nothing.
func (s *Schema) newModel() *model {
	m := &model{start: s.newContexts()}
	for i := range s.fields {
		switch s.fields[i].Class {
		case schema.ClassNumber:
			m.motion = append(m.motion, newMotionWeights())
		case schema.ClassQuat:
			m.turns = append(m.turns, newTurnWeights())
		default:
		}
	}
	return m
}

func newMotionWeights() (m motionWeights) {
	for a := range m.position {
		for c := range m.position[a] {
			m.position[a][c] = lms.New(positionStart[c]...)
		}
		fill(m.scale[a][:], scaleStart)
		fill(m.roll[a][:], rollStart[a])
	}
	return m
}

func newTurnWeights() (m turnWeights) {
	for a := range m.turn {
		for c := range m.turn[a] {
			m.turn[a][c] = lms.New(turnStart[c%classes]...)
		}
		fill(m.scale[a][:], scaleStart)
	}
	return m
}

func fill(w []lms.Predictor, start []int32) {
	for i := range w {
		w[i] = lms.New(start...)
	}
}

func (s *Schema) newContexts() (c contexts) {
	c.same = make([][64]rangecoder.Prob, len(s.fields))
	for i := range s.fields {
		switch s.fields[i].Class {
		case schema.ClassNumber:
			c.numbers = append(c.numbers, [numberContexts]rangecoder.IntModel{})
		case schema.ClassQuat:
			c.turns = append(c.turns, turnContexts{})
		case schema.ClassAngle:
			c.angles = append(c.angles, rangecoder.IntModel{})
		case schema.ClassBytes:
			c.strings = append(c.strings, bytesModel{})
		default:
			c.flags = append(c.flags, [flagContexts]rangecoder.Prob{})
			c.restFlags = append(c.restFlags, [2]rangecoder.Prob{})
		}
	}
	c.each(func(p []rangecoder.Prob) { rangecoder.Fill(p, rangecoder.Half, 0) })
	for i := range c.angles {
		c.angles[i].Init()
	}
	for i := range c.numbers {
		for k := range c.numbers[i] {
			c.numbers[i][k].Init()
		}
	}
	for i := range c.turns {
		for k := range c.turns[i].numbers {
			c.turns[i].numbers[k].Init()
		}
		c.turns[i].largest.Init()
	}
	c.added.Init(addedLevel)
	c.gap.Init(gapLevel)
	c.physics.Init(physicsLevel)
	return c
}

// each calls f for all predictors.
func (w *weights) each(f func(*lms.Predictor)) {
	all := func(p []lms.Predictor) {
		for i := range p {
			f(&p[i])
		}
	}
	for i := range w.motion {
		for k := range w.motion[i].position {
			all(w.motion[i].position[k][:])
			all(w.motion[i].scale[k][:])
			all(w.motion[i].roll[k][:])
		}
	}
	for i := range w.turns {
		for k := range w.turns[i].turn {
			all(w.turns[i].turn[k][:])
			all(w.turns[i].scale[k][:])
		}
	}
}

// each calls f for all probabilities, group by group.
func (c *contexts) each(f func([]rangecoder.Prob)) {
	for i := range c.numbers {
		for k := range c.numbers[i] {
			c.numbers[i][k].Each(f)
		}
	}
	for i := range c.turns {
		c.turns[i].largest.Each(f)
		for k := range c.turns[i].numbers {
			c.turns[i].numbers[k].Each(f)
		}
	}
	for i := range c.angles {
		c.angles[i].Each(f)
	}
	for i := range c.flags {
		f(c.flags[i][:])
		f(c.restFlags[i][:])
	}
	for i := range c.strings {
		b := &c.strings[i]
		f(b.replaced[:])
		f(b.kept[:])
		f(b.length[:])
	}
	for i := range c.same {
		f(c.same[i][:])
	}
	f(c.changed[:])
	for i := range c.disturbed {
		f(c.disturbed[i][:])
	}
	f(c.quiet[:])
	f(c.removed[:])
	f(c.added[:])
	f(c.gap[:])
	f(c.physics[:])
}

// copyFrom copies o, of the same schema.
func (c *contexts) copyFrom(o *contexts) {
	copy(c.numbers, o.numbers)
	copy(c.turns, o.turns)
	copy(c.angles, o.angles)
	copy(c.flags, o.flags)
	copy(c.restFlags, o.restFlags)
	copy(c.strings, o.strings)
	copy(c.same, o.same)
	c.changed, c.disturbed, c.quiet, c.removed, c.added, c.gap = o.changed, o.disturbed, o.quiet, o.removed, o.added, o.gap
	c.physics = o.physics
}
