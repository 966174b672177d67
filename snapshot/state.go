package snapshot

import (
	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/lms"
	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

const classes = 7

// motionModel is what was learned of a Motion field.
type motionModel struct {
	place   [3][classes]lms.Predictor
	scale   [3][2]lms.Predictor // in flight or at rest, and on the ground
	roll    [3][5]lms.Predictor // of what lies on the ground: along the axis it lies on, and across
	size    [3]size
	numbers rangecoder.IntModel
}

// quatModel is what was learned of a Quat field.
type quatModel struct {
	turn    [3][2 * classes]lms.Predictor // in flight, and on the ground
	scale   [3][2]lms.Predictor
	largest quat.LargestModel
	numbers rangecoder.IntModel
}

// state is the small state kept beside a snapshot: what its chain of baselines taught.
type state struct {
	motion  []motionModel
	quat    []quatModel
	angles  []angleModel
	flags   [][128]rangecoder.Prob
	strings []bytesModel
	settled [][ages][2]rangecoder.Prob // flags of objects at rest, by age
	changed [256]rangecoder.Prob
	hit     [closes][4]rangecoder.Prob // changed, of objects at rest, by how close another came
	same    []([64]rangecoder.Prob)    // by field: unchanged within an object that changed
	touch   int64                      // how near others come that set an object at rest in motion, logarithm
	quiet   [3]rangecoder.Prob         // of many objects at rest one changes, of a block of them, it does
	known   rangecoder.Prob
	gone    [2]rangecoder.Prob
	born    rangecoder.LengthModel // how many objects the baseline has not
	gap     rangecoder.LengthModel // ids between them
	last    []int16                // by object and field: the logarithm of what its last prediction missed by
	rested  []int16                // by object: how many snapshots ago it last changed
}

// What linear predictions start from: extrapolation of constant velocity, with more or less of the newest change of
// velocity and of acceleration by how steady the motion was. Q16.
var placeStart = [classes][]int32{
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

func (s *Schema) newState() *state {
	st := &state{}
	for i := range s.fields {
		switch s.fields[i].Kind {
		case Motion:
			m := motionModel{}
			for a := range m.place {
				for c := range m.place[a] {
					m.place[a][c] = lms.New(placeStart[c]...)
				}
				for i := range m.scale[a] {
					m.scale[a][i] = lms.New(scaleStart...)
				}
				m.size[a].half = 4 * leastHalf
				for c := range m.roll[a] {
					m.roll[a][c] = lms.New(rollStart[a]...)
				}
			}
			m.numbers.Init()
			st.motion = append(st.motion, m)
		case Quat:
			m := quatModel{}
			for a := range m.turn {
				for c := range m.turn[a] {
					m.turn[a][c] = lms.New(turnStart[c%classes]...)
				}
				for i := range m.scale[a] {
					m.scale[a][i] = lms.New(scaleStart...)
				}
			}
			m.numbers.Init()
			m.largest.Init()
			st.quat = append(st.quat, m)
		case Angle:
			st.angles = append(st.angles, angleModel{})
			st.angles[len(st.angles)-1].numbers.Init()
		case Bytes:
			st.strings = append(st.strings, bytesModel{})
			st.strings[len(st.strings)-1].init()
		default:
			st.flags = append(st.flags, [128]rangecoder.Prob{})
			rangecoder.Fill(st.flags[len(st.flags)-1][:], rangecoder.Half, 0)
			st.settled = append(st.settled, [ages][2]rangecoder.Prob{})
			for i := range st.settled[len(st.settled)-1] {
				rangecoder.Fill(st.settled[len(st.settled)-1][i][:], rangecoder.Half, 0)
			}
		}
	}
	st.same = make([][64]rangecoder.Prob, len(s.fields))
	for i := range st.same {
		rangecoder.Fill(st.same[i][:], rangecoder.Half, 0)
	}
	rangecoder.Fill(st.changed[:], rangecoder.Half, 0)
	for i := range st.hit {
		rangecoder.Fill(st.hit[i][:], rangecoder.Half, 0)
	}
	rangecoder.Fill(st.quiet[:], rangecoder.Half, 0)
	st.touch = 40 * fixed.LogOne
	rangecoder.Fill(st.gone[:], rangecoder.Half, 0)
	st.known = rangecoder.Prob{P: 60000, N: 10}
	st.born.Init(bornLevel)
	st.gap.Init(gapLevel)
	return st
}

// copyFrom makes s equal to o, of the same schema, but for what is known of single objects.
func (s *state) copyFrom(o *state) {
	copy(s.motion, o.motion)
	copy(s.quat, o.quat)
	copy(s.angles, o.angles)
	copy(s.flags, o.flags)
	copy(s.strings, o.strings)
	copy(s.same, o.same)
	copy(s.settled, o.settled)
	s.hit = o.hit
	s.touch, s.quiet = o.touch, o.quiet
	s.changed, s.known, s.gone, s.born, s.gap = o.changed, o.known, o.gone, o.born, o.gap
}
