package perplayer

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/fnv"
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
	angles       []rangecoder.IntModel
	flags        [][128]rangecoder.Prob
	strings      []bytesModel
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

func (s *Schema) newState() *modelState {
	st := &modelState{contactRange: 40 * fixed.LogOne, known: rangecoder.Prob{P: 60000, N: 10}}
	st.same = make([][64]rangecoder.Prob, len(s.fields))
	for i := range s.fields {
		switch s.fields[i].Class {
		case schema.ClassNumber:
			st.motion = append(st.motion, newMotionModel())
		case schema.ClassQuat:
			st.quat = append(st.quat, newQuatModel())
		case schema.ClassAngle:
			st.angles = append(st.angles, rangecoder.IntModel{})
			st.angles[len(st.angles)-1].Init()
		case schema.ClassBytes:
			m := bytesModel{length: rangecoder.Prob{P: rangecoder.Half}}
			halve(m.replaced[:], m.kept[:])
			st.strings = append(st.strings, m)
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
	copy(s.angles, o.angles)
	copy(s.flags, o.flags)
	copy(s.strings, o.strings)
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

type bytesModel struct {
	replaced [2]rangecoder.Prob // by whether the object's predicted fields changed
	length   rangecoder.Prob    // the length changed
	kept     [2]rangecoder.Prob // a byte equals that of the baseline, by whether the previous one did
}

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

// hash returns the hash of a set and its model state, for the divergence check.
func hash(set *Set, st *modelState) uint16 {
	h := fnv.Offset
	for _, o := range set.objects {
		h = h.Add(o.word())
	}
	for _, v := range set.ints {
		h = h.Add(uint64(uint32(v)))
	}
	for i := range stateFields {
		f := &stateFields[i]
		first, n, _ := f.elements(st)
		for k := range n {
			for _, r := range f.runs {
				h = r.hash(h, unsafe.Add(first, uintptr(k)*f.size+r.offset))
			}
		}
		h = h.Add(uint64(n))
	}
	return h.Fold16()
}

// stateFields are the fields of a model state. By reflection, the hash includes all of them.
var stateFields = fieldsOf(reflect.TypeFor[modelState]())

type stateField struct {
	offset uintptr
	slice  bool
	size   uintptr // of an element
	runs   []run   // of an element
}

// run is consecutive numbers of one size.
type run struct {
	offset, size uintptr
	n            int
}

func fieldsOf(t reflect.Type) (fields []stateField) {
	for f := range t.Fields() {
		elem, slice := f.Type, f.Type.Kind() == reflect.Slice
		if slice {
			elem = elem.Elem()
		}
		fields = append(fields, stateField{f.Offset, slice, elem.Size(), appendRuns(nil, elem, 0)})
	}
	return fields
}

func appendRuns(runs []run, t reflect.Type, offset uintptr) []run {
	switch t.Kind() {
	case reflect.Struct:
		for f := range t.Fields() {
			runs = appendRuns(runs, f.Type, offset+f.Offset)
		}
	case reflect.Array:
		for i := range t.Len() {
			runs = appendRuns(runs, t.Elem(), offset+uintptr(i)*t.Elem().Size())
		}
	case reflect.Int16, reflect.Uint16, reflect.Int32, reflect.Uint32, reflect.Int64, reflect.Uint64:
		if k := len(runs) - 1; k >= 0 && runs[k].size == t.Size() && runs[k].offset+uintptr(runs[k].n)*t.Size() == offset {
			runs[k].n++
		} else {
			runs = append(runs, run{offset, t.Size(), 1})
		}
	default:
		panic(fmt.Sprintf("perplayer: a model state contains a %v, whose size depends on the processor", t))
	}
	return runs
}

func (f *stateField) elements(st *modelState) (first unsafe.Pointer, n, capacity int) {
	first = unsafe.Add(unsafe.Pointer(st), f.offset)
	if !f.slice {
		return first, 1, 1
	}
	s := (*[]struct{})(first)
	return unsafe.Pointer(unsafe.SliceData(*s)), len(*s), cap(*s)
}

func (r *run) hash(h fnv.Hash, first unsafe.Pointer) fnv.Hash {
	switch r.size {
	case 2:
		return addAll[uint16](h, first, r.n)
	case 4:
		return addAll[uint32](h, first, r.n)
	}
	return addAll[uint64](h, first, r.n)
}

func addAll[T uint16 | uint32 | uint64](h fnv.Hash, first unsafe.Pointer, n int) fnv.Hash {
	for _, v := range unsafe.Slice((*T)(first), n) {
		h = h.Add(uint64(v))
	}
	return h
}

func (s *modelState) memory() (sum int) {
	for i := range stateFields {
		_, _, capacity := stateFields[i].elements(s)
		sum += capacity * int(stateFields[i].size)
	}
	return sum
}
