package perplayer

import (
	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/lms"
	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
	"github.com/uplink-rpc/uplink/schema"
)

const classes = 7

// motionModel is the model of a field of class ClassNumber.
type motionModel struct {
	position [3][classes]lms.Predictor
	scale    [3][2]lms.Predictor // in flight or at rest, and on the ground
	roll     [3][5]lms.Predictor // on the ground: along the ground axis, and across
	size     [3]size
	numbers  rangecoder.IntModel
}

// quatModel is the model of a field of class ClassQuat.
type quatModel struct {
	turn    [3][2 * classes]lms.Predictor // in flight, and on the ground
	scale   [3][2]lms.Predictor
	largest quat.LargestModel
	numbers rangecoder.IntModel
}

// modelState is the state of the models after a snapshot: learned from its chain of baselines.
type modelState struct {
	motion       []motionModel
	quat         []quatModel
	flags        [][128]rangecoder.Prob
	restFlags    [][ageContexts][2]rangecoder.Prob // integer fields of objects at rest, by age
	changed      [256]rangecoder.Prob
	disturbed    [contactContexts][4]rangecoder.Prob // a resting object changed, by contact
	same         []([64]rangecoder.Prob)             // by field: unchanged in an object that changed
	contactRange int64                               // log2 of the distance of contacts
	quiet        [3]rangecoder.Prob                  // undisturbed: any, any of a block, this
	known        rangecoder.Prob
	removed      [2]rangecoder.Prob
	added        rangecoder.LengthModel // number of objects that are not in the baseline
	gap          rangecoder.LengthModel // between their ids
	last         []int16                // by field and object: log2 of the error of the last prediction
	rested       []int16                // by object: snapshots since it last changed
}

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

var scaleStart = []int32{20000, 13000, 0, 6500, 26000, 6500, 6500}

func (s *objectSchema) newState() *modelState {
	st := &modelState{contactRange: 40 * fixed.LogOne, known: rangecoder.Prob{P: 60000, N: 10}}
	st.same = make([][64]rangecoder.Prob, len(s.fields))
	for i := range s.fields {
		switch s.fields[i].Class {
		case schema.ClassNumber:
			st.motion = append(st.motion, newMotionModel())
		case schema.ClassQuat:
			st.quat = append(st.quat, newQuatModel())
		default:
			st.flags = append(st.flags, [128]rangecoder.Prob{})
			st.restFlags = append(st.restFlags, [ageContexts][2]rangecoder.Prob{})
		}
		halve(st.same[i][:])
	}
	for i := range st.flags {
		halve(st.flags[i][:])
		for age := range st.restFlags[i] {
			halve(st.restFlags[i][age][:])
		}
	}
	for i := range st.disturbed {
		halve(st.disturbed[i][:])
	}
	halve(st.changed[:], st.quiet[:], st.removed[:])
	st.added.Init(addedLevel)
	st.gap.Init(gapLevel)
	return st
}

func newMotionModel() (m motionModel) {
	for a := range m.position {
		for c := range m.position[a] {
			m.position[a][c] = lms.New(positionStart[c]...)
		}
		start(m.scale[a][:], scaleStart)
		start(m.roll[a][:], rollStart[a])
		m.size[a].half = 4 * minHalf
	}
	m.numbers.Init()
	return m
}

func newQuatModel() (m quatModel) {
	for a := range m.turn {
		for c := range m.turn[a] {
			m.turn[a][c] = lms.New(turnStart[c%classes]...)
		}
		start(m.scale[a][:], scaleStart)
	}
	m.numbers.Init()
	m.largest.Init()
	return m
}

func start(predictors []lms.Predictor, weights []int32) {
	for i := range predictors {
		predictors[i] = lms.New(weights...)
	}
}

func halve(models ...[]rangecoder.Prob) {
	for _, m := range models {
		rangecoder.Fill(m, rangecoder.Half, 0)
	}
}

// copyFrom copies o, of the same schema, except for the state of single objects.
func (s *modelState) copyFrom(o *modelState) {
	copy(s.motion, o.motion)
	copy(s.quat, o.quat)
	copy(s.flags, o.flags)
	copy(s.same, o.same)
	copy(s.restFlags, o.restFlags)
	s.disturbed = o.disturbed
	s.contactRange, s.quiet = o.contactRange, o.quiet
	s.changed, s.known, s.removed, s.added, s.gap = o.changed, o.known, o.removed, o.added, o.gap
}

// size is the estimated size of objects and position of the ground along one axis, Q4.
type size struct {
	floor int64 // position of objects that lie flat on the ground
	half  int32
	count int32 // number of observations
}

const (
	minHalf         = 16
	maxHalf         = 1 << 24
	minExtentChange = 1 << 12 // minimum change of extent that is an observation, Q16
	trustedCount    = 256     // number of observations after which only objects near the ground count
	maxCount        = 1 << 12 // number of observations after which the learning rate is constant
)

// Contexts of objects at rest: the distance to the nearest moving object in quarters of an
// octave, and the age.
const (
	contactContexts = 128
	ageContexts     = 64
	ageStep         = 4 // snapshots
	oldest          = 1 << 14
)

// Initial levels of counts.
const (
	addedLevel = 0
	gapLevel   = 6
)
