package snapshot

import "github.com/uplink-rpc/uplink/internal/codec/lms"

// Indices of models. Payloads with references use models 1 to 5, by the distance to the baseline.
const (
	bareModel  = 0 // model of payloads without references
	modelCount = 6
)

// modelOf returns the index of the model of a payload with references, given the distance to its
// baseline.
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

// model holds the prediction weights and initial probabilities of payloads within a range of
// distances. Coding a payload does not change them.
type model struct {
	motion []motionWeights // by field of class ClassNumber
	turns  []turnWeights   // by field of class ClassQuat
	start  []prob
}

// classes is the number of classes of motion. Each class has its own weights.
const classes = 7

// motionWeights holds the prediction weights of a field of class ClassNumber, by component.
type motionWeights struct {
	position [3][classes]lms.Weights
	scale    [3][2 * classes]lms.Weights // by class: first off the ground, then on the ground
	roll     [3][5]lms.Weights           // objects on the ground: index 0 along the ground axis, 1 and 2 across it
}

// turnWeights holds the prediction weights of a field of class ClassQuat, by component.
type turnWeights struct {
	turn  [3][2 * classes]lms.Weights // by class: first off the ground, then on the ground
	scale [3][2 * classes]lms.Weights
}

// Initial weights in Q16. They extrapolate at constant velocity and add a part of the newest change
// of velocity, which depends on the class.
var positionStart = [classes]lms.Weights{
	{1 << 15},
	{1 << 16, 20000, 0, 78000},
	{1 << 16, 60000, 0, 20000},
	{1 << 16},
	{1 << 16, 90000, -20000, 6000, 0, 16000},
	{1 << 16, 60000, 0, 0, 0, 30000},
	{1 << 15, 0, 0, 1 << 14},
}

var rollStart = [3]lms.Weights{
	{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 << 16, 0, 1 << 15},
	{1 << 14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3 << 14},
	{1 << 14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3 << 14},
}

var turnStart = [classes]lms.Weights{
	{1 << 16, 20000, 20000},
	{1 << 16, 13000, 20000, 20000},
	{1 << 16, 20000, 20000, 13000},
	{1 << 16},
	{1 << 16, 40000},
	{1 << 16, 52000},
	{1 << 16},
}

var scaleStart = lms.Weights{20000, 13000, 0, 6500, 26000, 6500, 0, 0}

// modelSet is the parameters with which both ends code snapshots of objects of one schema. It is
// immutable and safe for concurrent use.
type modelSet struct {
	models [modelCount]*model
}

func newModel(s *Schema) *modelSet {
	var m modelSet
	for i := range m.models {
		m.models[i] = s.newModel()
	}
	return &m
}

// at returns the model for a payload with the given references.
func (m *modelSet) at(refs *refFrames) *model { return m.models[refs.model()] }

func newMotionWeights() (m motionWeights) {
	for a := range m.position {
		m.position[a] = positionStart
		fill(m.scale[a][:], scaleStart)
		fill(m.roll[a][:], rollStart[a])
	}
	return m
}

func newTurnWeights() (m turnWeights) {
	for a := range m.turn {
		for c := range m.turn[a] {
			m.turn[a][c] = turnStart[c%classes]
		}
		fill(m.scale[a][:], scaleStart)
	}
	return m
}

func fill(w []lms.Weights, v lms.Weights) {
	for i := range w {
		w[i] = v
	}
}

// each calls f with the weights of each prediction, in a fixed order.
func (m *model) each(f func(*lms.Weights)) {
	all := func(w []lms.Weights) {
		for i := range w {
			f(&w[i])
		}
	}
	for i := range m.motion {
		for k := range m.motion[i].position {
			all(m.motion[i].position[k][:])
			all(m.motion[i].scale[k][:])
			all(m.motion[i].roll[k][:])
		}
	}
	for i := range m.turns {
		for k := range m.turns[i].turn {
			all(m.turns[i].turn[k][:])
			all(m.turns[i].scale[k][:])
		}
	}
}

// derive copies the weights and probabilities of from, a model of schema fs, for fields of the same
// classes.
func (m *model) derive(s *Schema, from *model, fs *Schema) {
	to, of := &s.layout, &fs.layout
	move := func(to, of, n int) { copy(m.start[to:to+n], from.start[of:of+n]) }
	for i := range m.motion {
		k := min(i, len(from.motion)-1)
		m.motion[i] = from.motion[k]
		move(to.numbers[i], of.numbers[k], numberKinds*integerSize)
	}
	for i := range m.turns {
		m.turns[i] = from.turns[0]
		move(to.turns[i], of.turns[0], turnSize)
	}
	for i := range to.flags {
		move(to.flags[i], of.flags[0], flagContexts+2)
	}
	for i := range s.fields {
		for k := range fs.fields {
			if fs.fields[k].Class == s.fields[i].Class && (k == fs.anchor) == (i == s.anchor) {
				move(to.same[i], of.same[k], sameSize)
			}
		}
	}
	move(to.changed, of.changed, to.size-to.changed)
}
